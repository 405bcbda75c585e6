"""Hooks for schemathesis: payment callbacks are signed over the bytes that are sent."""

import hashlib
import hmac
import os
import time

import schemathesis
from requests.auth import AuthBase

HEADER = "Stripe-Signature"


class StripeSignature(AuthBase):
    """Signs as Stripe does, where schemathesis sends the placeholder for a valid signature. A header that it
    leaves out or makes up is not changed."""

    def __call__(self, request):
        if request.headers.get(HEADER) == os.environ["ONSALE_UNSIGNED"]:
            body = request.body or b""
            body = body.encode() if isinstance(body, str) else body
            seconds = int(time.time())
            key = os.environ["ONSALE_STRIPE"].encode()
            tag = hmac.new(key, f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
            request.headers[HEADER] = f"t={seconds},v1={tag}"
        return request


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.operation.path.startswith("/payments/"):
        kwargs["auth"] = StripeSignature()
