"""drand's rounds: section "The beacon" of docs/draw.md."""

import functools
import hashlib
import sys
from dataclasses import dataclass

LOCAL_PERIOD = 1
LATE_EVERY = 200
TAG = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"


@dataclass(frozen=True)
class Chain:
    hash: str
    key: bytes
    genesis: int  # seconds
    period: int  # seconds

    def time_ms(self, number):
        return 1000 * (self.genesis + self.period * (number - 1))

    def named_round(self, opens_at_ms, closes_at_ms):
        margin = min(60_000, (opens_at_ms - closes_at_ms) // 4)
        return (opens_at_ms - margin - 1000 * self.genesis) // (1000 * self.period) + 1

    def late_round(self, at_ms):
        """The first round after `at_ms` whose number is a multiple of 200."""
        first = max((at_ms - 1000 * self.genesis) // (1000 * self.period) + 2, 1)
        return -(-first // LATE_EVERY) * LATE_EVERY


QUICKNET = Chain(
    "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971",
    bytes.fromhex(
        "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d106451"
        "0d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
    ),
    1692803367,
    3,
)


def message(number):
    return hashlib.sha256(number.to_bytes(8, "big")).digest()


@functools.lru_cache(64)
def is_signature(key, number, signature):
    """Whether `signature` (48 bytes) is that of round `number` by `key` (96 bytes)."""
    # A second of loading, which a room without a beacon does not need. py_ecc lets Python recurse so deep that the
    # parser of JSON overflows the stack on nested input: the limit is as it was before.
    limit = sys.getrecursionlimit()
    from py_ecc.bls.g2_primitives import subgroup_check
    from py_ecc.bls.hash_to_curve import hash_to_G1
    from py_ecc.bls.point_compression import decompress_G1, decompress_G2
    from py_ecc.optimized_bls12_381 import FQ12, G2, final_exponentiate, is_inf, neg, pairing

    sys.setrecursionlimit(limit)
    try:
        public = decompress_G2((int.from_bytes(key[:48], "big"), int.from_bytes(key[48:], "big")))
        point = decompress_G1(int.from_bytes(signature, "big"))
    except ValueError:
        return False
    if is_inf(public) or is_inf(point) or not subgroup_check(public) or not subgroup_check(point):
        return False
    hashed = hash_to_G1(message(number), TAG, hashlib.sha256)
    product = pairing(public, hashed, final_exponentiate=False) * pairing(G2, neg(point), final_exponentiate=False)
    return final_exponentiate(product) == FQ12.one()
