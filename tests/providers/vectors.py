"""Vectors of WeChat Pay v3 and Alipay, made and checked with other people's implementations.

    python3 -m venv /tmp/vectors && /tmp/vectors/bin/pip install wechatpayv3==2.0.4 python-alipay-sdk==3.4.0
    /tmp/vectors/bin/python tests/providers/vectors.py

It writes `vectors.json` beside itself, which the unit tests of `shared::providers` read. Keys that are there
already are kept, and everything else follows from them, so that it writes the same file again. The keys sign
nothing but these vectors. No request leaves the machine.
"""

import json
import pathlib
import sys
from base64 import b64encode
from unittest import mock
from urllib.parse import parse_qsl, quote_plus, urlencode

from alipay import AliPay
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from wechatpayv3.core import Core
from wechatpayv3.utils import build_authorization, rsa_sign, rsa_verify

FILE = pathlib.Path(__file__).with_name("vectors.json")
NOW = 1_800_000_000
MERCHANT_ID, WECHAT_APP, SERIAL = "1900000001", "wx8888888888888888", "1DDE55AD98ED71D6EDD4A4A16996DE7B47773A8C"
KEY_ID, API_V3_KEY = "PUB_KEY_ID_0119000000012024101100397200000006", "0123456789abcdef0123456789abcdef"
ALIPAY_APP, SELLER_ID = "2014072300007148", "2088102146225135"
ATTEMPT = "169218430493097984-1"


def keys(name, bits, known):
    """A key pair in each of its forms."""
    pem = known.get(name, {}).get("pkcs8_pem")
    if pem:
        key = load_pem_private_key(pem.encode(), password=None)
    else:
        key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    public = key.public_key()

    def private(encoding, form):
        return key.private_bytes(encoding, form, NoEncryption())

    return {
        "pkcs8_pem": private(Encoding.PEM, PrivateFormat.PKCS8).decode(),
        "pkcs1_pem": private(Encoding.PEM, PrivateFormat.TraditionalOpenSSL).decode(),
        "pkcs8_base64": b64encode(private(Encoding.DER, PrivateFormat.PKCS8)).decode(),
        "pkcs1_base64": b64encode(private(Encoding.DER, PrivateFormat.TraditionalOpenSSL)).decode(),
        "public_pem": public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode(),
        "public_pkcs1_pem": public.public_bytes(Encoding.PEM, PublicFormat.PKCS1).decode(),
        "public_base64": b64encode(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode(),
    }


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def wechat(pairs):
    merchant = load_pem_private_key(pairs["merchant"]["pkcs8_pem"].encode(), password=None)
    platform = load_pem_private_key(pairs["platform"]["pkcs8_pem"].encode(), password=None)

    def request(method, path, nonce, body):
        with mock.patch("wechatpayv3.utils.time.time", return_value=NOW):
            header = build_authorization(path, method, MERCHANT_ID, SERIAL, merchant, data=body, nonce_str=nonce)
        return {"method": method, "path": path, "nonce": nonce, "body": body, "authorization": header}

    requests = [
        request("GET", f"/v3/pay/transactions/out-trade-no/{ATTEMPT}?mchid={MERCHANT_ID}", "593BEC0C930BF1AFEB40B4A08C8FB242", ""),
        request("POST", "/v3/pay/transactions/native", "EC2316275641FAA3AACF3CC599E8730F",
                compact({"mchid": MERCHANT_ID, "description": "演唱会门票", "amount": {"total": 110600}})),
    ]

    def signed(nonce, body):
        text = f"{NOW}\n{nonce}\n{body}\n"
        signature = rsa_sign(platform, text)
        assert rsa_verify(NOW, nonce, body, signature, platform.public_key())
        return {
            "Wechatpay-Timestamp": str(NOW), "Wechatpay-Nonce": nonce, "Wechatpay-Signature": signature,
            "Wechatpay-Serial": KEY_ID, "Wechatpay-Signature-Type": "WECHATPAY2-SHA256-RSA2048",
        }

    answers = [
        {"body": body, "headers": signed(nonce, body)}
        for nonce, body in [
            ("d824f2e086d3c1df967785d13fcd22ef", '{"code_url":"weixin://wxpay/bizpayurl?pr=JyC91EIz1"}'),
            ("c5ac7061fccab6bf3e254dcf98995b8c", ""),
        ]
    ]

    transaction = {
        "mchid": MERCHANT_ID, "appid": WECHAT_APP, "out_trade_no": ATTEMPT,
        "transaction_id": "4200000000202701150000000001", "trade_type": "NATIVE", "trade_state": "SUCCESS",
        "trade_state_desc": "支付成功", "bank_type": "OTHERS", "attach": "",
        "success_time": "2027-01-15T16:00:00+08:00", "payer": {"openid": "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o"},
        "amount": {"total": 110600, "payer_total": 110000, "currency": "CNY", "payer_currency": "CNY"},
    }
    core = Core(MERCHANT_ID, SERIAL, pairs["merchant"]["pkcs8_pem"], API_V3_KEY,
                public_key=pairs["platform"]["public_pem"], public_key_id=KEY_ID)

    def notification(event_type, resource, associated):
        plaintext, nonce = compact(resource), "fdasflkja484"
        sealed = AESGCM(API_V3_KEY.encode()).encrypt(nonce.encode(), plaintext.encode(), associated.encode())
        body = compact({
            "id": "EV-2018022511223320873", "create_time": "2027-01-15T16:00:00+08:00",
            "resource_type": "encrypt-resource", "event_type": event_type, "summary": "支付成功",
            "resource": {"original_type": "transaction", "algorithm": "AEAD_AES_256_GCM",
                         "ciphertext": b64encode(sealed).decode(), "associated_data": associated, "nonce": nonce},
        })
        headers = signed("5dc3a1b2c4d5e6f708192a3b4c5d6e7f", body)
        assert core.decrypt_callback(headers, body) == plaintext
        return {"headers": headers, "body": body, "plaintext": plaintext}

    return {
        "merchant_id": MERCHANT_ID, "app_id": WECHAT_APP, "serial": SERIAL, "key_id": KEY_ID, "api_v3_key": API_V3_KEY,
        "requests": requests, "answers": answers,
        "notifications": [
            notification("TRANSACTION.SUCCESS", transaction, "transaction"),
            notification("TRANSACTION.SUCCESS", transaction, ""),
            notification("REFUND.SUCCESS", {"mchid": MERCHANT_ID, "refund_status": "SUCCESS"}, "refund"),
        ],
    }


def alipay(pairs):
    ours = AliPay(ALIPAY_APP, app_private_key_string=pairs["merchant"]["pkcs8_pem"],
                  alipay_public_key_string=pairs["platform"]["public_pem"])
    theirs = AliPay(ALIPAY_APP, app_private_key_string=pairs["platform"]["pkcs8_pem"],
                    alipay_public_key_string=pairs["merchant"]["public_pem"])

    def request(method, business, **more):
        signed = ours.client_api(method, compact(business), timestamp="2027-01-15 16:00:00", **more)
        return {"params": dict(parse_qsl(signed, keep_blank_values=True)), "query": signed}

    trade = ATTEMPT.replace("-", "_")
    requests = [
        request("alipay.trade.page.pay", {
            "out_trade_no": trade, "product_code": "FAST_INSTANT_TRADE_PAY", "total_amount": "1106.00",
            "subject": "演唱会门票", "time_expire": "2027-01-15 16:15:00"},
            format="JSON", return_url="https://shop.example/paid?order=7&x=a b", notify_url="https://api.example/callbacks/k/alipay"),
        request("alipay.trade.query", {"out_trade_no": trade}, format="JSON"),
    ]

    def notification(**changes):
        fields = {
            "gmt_create": "2027-01-15 16:00:01", "charset": "utf-8", "gmt_payment": "2027-01-15 16:00:05",
            "notify_time": "2027-01-15 16:00:06", "subject": "演唱会门票 A&B=1+1", "buyer_id": "2088102116773037",
            "body": "", "invoice_amount": "1106.00", "version": "1.0", "notify_id": "2027011500222160006098371000001",
            "fund_bill_list": '[{"amount":"1106.00","fundChannel":"ALIPAYACCOUNT"}]',
            "notify_type": "trade_status_sync", "out_trade_no": trade, "total_amount": "1106.00",
            "trade_status": "TRADE_SUCCESS", "trade_no": "2027011522001473371000001", "auth_app_id": ALIPAY_APP,
            "receipt_amount": "1106.00", "point_amount": "0.00", "buyer_pay_amount": "1100.00", "app_id": ALIPAY_APP,
            "seller_id": SELLER_ID, **changes,
        }
        sign = theirs._sign("&".join(f"{name}={value}" for name, value in sorted(fields.items())))
        sent = {**fields, "sign_type": "RSA2"}
        assert ours.verify(dict(sent), sign)
        return {"body": urlencode({**sent, "sign": sign}, quote_via=quote_plus), "fields": sent}

    def response(kind, value):
        raw = compact(value).replace("/", "\\/")
        body = f'{{"{kind}":{raw},"sign":"{theirs._sign(raw)}"}}'
        ours._verify_and_return_sync_response(body, kind)
        return {"kind": kind, "value": raw, "body": body}

    return {
        "app_id": ALIPAY_APP, "seller_id": SELLER_ID, "requests": requests,
        "notifications": [notification(), notification(trade_status="TRADE_CLOSED")],
        "responses": [
            response("alipay_trade_query_response", {
                "code": "10000", "msg": "Success", "buyer_logon_id": "abc***@sandbox.com", "out_trade_no": trade,
                "total_amount": "1106.00", "trade_no": "2027011522001473371000001", "trade_status": "TRADE_SUCCESS"}),
            response("alipay_trade_precreate_response", {
                "code": "10000", "msg": "Success", "out_trade_no": trade, "qr_code": "https://qr.alipay.com/bax03431ljhokirwl38f00a7"}),
        ],
    }


def main():
    known = json.loads(FILE.read_text())["keys"] if FILE.exists() else {}
    pairs = {"merchant": keys("merchant", 2048, known), "platform": keys("platform", 2048, known),
             "small": keys("small", 1024, known)}
    vectors = {"made_by": "vectors.py", "now": NOW, "attempt": ATTEMPT, "keys": pairs,
               "wechat": wechat(pairs), "alipay": alipay(pairs)}
    FILE.write_text(json.dumps(vectors, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
