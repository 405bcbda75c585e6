"""The packages wechatpayv3 and python-alipay-sdk pay, ask and send back at our fakes of WeChat Pay and Alipay.

`fakes/payments/tests/published.rs` runs it: the settings of both accounts come on standard input, what happened
goes to standard output, as JSON. No request leaves the machine.
"""

import json
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import Queue
from urllib.parse import parse_qsl

from alipay import AliPay
from alipay.exceptions import AliPayValidationError
from wechatpayv3 import WeChatPay, WeChatPayType

NOTIFIED = Queue()
PAID, UNPAID = "169218430493097984", "169218430493097985"


class Shop(BaseHTTPRequestHandler):
    """Takes every notification."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        NOTIFIED.put((dict(self.headers.items()), body.decode()))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"success")

    def log_message(self, *_):
        pass


def press(page):
    """A person pays."""
    urllib.request.urlopen(page).read()
    return urllib.request.urlopen(page, data=b"action=pay").status


def pem(kind, text):
    return f"-----BEGIN {kind}-----\n{text}\n-----END {kind}-----"


def wechat(settings, notify_url, other_key):
    (key_id, public_key), = settings["public_keys"].items()

    def account(private_key):
        made = WeChatPay(
            wechatpay_type=WeChatPayType.NATIVE, mchid=settings["merchant_id"], private_key=private_key,
            cert_serial_no=settings["serial"], appid=settings["app_id"], apiv3_key=settings["api_v3_keys"][0],
            notify_url=notify_url, public_key=public_key, public_key_id=key_id)
        made._core._gate_way = settings["url"]
        return made

    ours = account(settings["private_key"])
    asked = {"description": "门票", "out_trade_no": f"{PAID}-1", "amount": {"total": 110600, "currency": "CNY"}}
    status, text = ours.pay(**asked)
    code = json.loads(text)["code_url"]
    said = {"placed": [status, code.split("=")[0]], "again": json.loads(ours.pay(**asked)[1])["code_url"] == code}
    said["other"] = json.loads(ours.pay(**{**asked, "amount": {"total": 1}})[1])["code"]
    state = lambda number: json.loads(ours.query(out_trade_no=number)[1]).get("trade_state")
    said["waits"] = state(f"{PAID}-1")
    press(f"{settings['url']}/pay/{code.split('=')[1]}")
    said["paid"] = state(f"{PAID}-1")
    headers, body = NOTIFIED.get(timeout=60)
    event = ours.callback(headers, body)
    said["told"] = [event["event_type"], event["resource"]["out_trade_no"], event["resource"]["amount"]["total"]]
    said["tampered"] = [
        ours.callback(headers, body.replace("TRANSACTION.SUCCESS", "TRANSACTION.SUCCES5")),
        ours.callback({**headers, "wechatpay-nonce": "x"}, body),
        ours.callback({**headers, "wechatpay-timestamp": "1800000000"}, body),
    ]
    payment = event["resource"]["transaction_id"]
    back = {"out_refund_no": "r-1", "transaction_id": payment,
            "amount": {"refund": 110600, "total": 110600, "currency": "CNY"}}
    said["refund"] = [json.loads(ours.refund(**back)[1])["status"] for _ in range(2)]
    said["found"] = json.loads(ours.query_refund("r-1")[1])["status"]
    ours.pay(**{**asked, "out_trade_no": f"{UNPAID}-1"})
    said["closed"] = [ours.close(f"{UNPAID}-1")[0], state(f"{UNPAID}-1"), ours.close("nobody-1")[0]]
    said["paid_is_not_closed"] = ours.close(f"{PAID}-1")[0]
    status, text = account(other_key).query(out_trade_no=f"{PAID}-1")
    said["forged"] = [status, json.loads(text)["code"]]
    return said


def alipay(settings, notify_url, other_key):
    def account(private_key):
        made = AliPay(
            settings["app_id"], app_notify_url=notify_url, app_private_key_string=pem("PRIVATE KEY", private_key),
            alipay_public_key_string=pem("PUBLIC KEY", settings["public_keys"][0]))
        made._gateway = settings["url"]
        return made

    ours = account(settings["private_key"])
    made = ours.api_alipay_trade_precreate("Tickets", f"{PAID}_1", "1106.00")
    said = {"made": made["code"], "unopened": ours.api_alipay_trade_query(out_trade_no=f"{PAID}_1")["sub_code"]}
    said["unopened_close"] = ours.api_alipay_trade_close(out_trade_no=f"{PAID}_1")["sub_code"]
    press(made["qr_code"])
    trade = ours.api_alipay_trade_query(out_trade_no=f"{PAID}_1")
    said["paid"] = [trade["trade_status"], trade["total_amount"]]
    _, body = NOTIFIED.get(timeout=60)
    form = dict(parse_qsl(body, keep_blank_values=True))
    sign = form.pop("sign")
    said["told"] = [form["out_trade_no"], form["trade_status"], ours.verify(dict(form), sign)]
    said["tampered"] = [ours.verify({**form, name: "1"}, sign) for name in ("total_amount", "out_trade_no", "more")]
    number = {"trade_no": trade["trade_no"], "out_request_no": "r_1"}
    said["refund"] = [ours.api_alipay_trade_refund("1106.00", **number)["fund_change"] for _ in range(2)]
    found = ours.api_alipay_trade_fastpay_refund_query("r_1", trade_no=trade["trade_no"])
    said["found"] = [found["refund_status"], found["refund_amount"]]
    query = ours.api_alipay_trade_page_pay("Tickets", f"{UNPAID}_1", "1.00", return_url="https://shop.example/")
    said["page"] = "Payment" in urllib.request.urlopen(f"{settings['url']}?{query}").read().decode()
    closed = ours.api_alipay_trade_close(out_trade_no=f"{UNPAID}_1")
    said["closed"] = [closed["code"], ours.api_alipay_trade_query(out_trade_no=f"{UNPAID}_1")["trade_status"]]
    forger = account(other_key)
    said["forged"] = forger.api_alipay_trade_query(out_trade_no=f"{PAID}_1")["sub_code"]
    data = ours.build_body("alipay.trade.query", {"out_trade_no": f"{PAID}_1"})
    raw = urllib.request.urlopen(f"{settings['url']}?{ours.sign_data(data)}").read().decode()
    try:
        ours._verify_and_return_sync_response(raw.replace("1106.00", "9106.00"), "alipay_trade_query_response")
        said["answer"] = "believed"
    except AliPayValidationError:
        said["answer"] = "refused"
    return said


def main():
    asked = json.load(sys.stdin)
    shop = HTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=shop.serve_forever, daemon=True).start()
    notify_url = f"http://127.0.0.1:{shop.server_port}/notify"
    # The other provider's merchant has a key that is none of this one's.
    wechat_key, alipay_key = asked["wechat"]["private_key"], asked["alipay"]["private_key"]
    print(json.dumps({
        "wechat": wechat(asked["wechat"], notify_url, alipay_key),
        "alipay": alipay(asked["alipay"], notify_url, wechat_key),
    }))


main()
