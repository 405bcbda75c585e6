"""Tests of verify_draw: python -m unittest, in the folder above."""

import sys

_limit = sys.getrecursionlimit()
import py_ecc.bls.hash_to_curve  # noqa: E402, F401

# As verify_draw.beacon does it.
sys.setrecursionlimit(_limit)
