"""Starts an engine with something on sale, lets schemathesis loose on it, and audits what is left.

Called by scripts/test-schemathesis with the program `onsale` and options of `schemathesis run`.
"""

import base64
import datetime
import hashlib
import json
import os
import pathlib
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable

import requests

HERE = pathlib.Path(__file__).parent
BUYER = "alice"
# Seconds from the publication of the sale with a waiting room to its opening: somebody joins in between.
OPENS_SECONDS = 5


def main() -> int:
    onsale, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        data = pathlib.Path(scratch, "data")
        up = [onsale, "up", "--ephemeral", "--port", "0", "--json", "--reconcile-seconds", "1", "--data-dir", str(data)]
        engine = subprocess.Popen(up, stdout=subprocess.PIPE, text=True, env=os.environ | {"ONSALE_LOG": "off"})
        try:
            # It prints its addresses when it is ready.
            addresses = json.loads(engine.stdout.readline())
            return attack(onsale, addresses, data, pathlib.Path(scratch), options)
        finally:
            engine.terminate()
            engine.wait()


def attack(
    onsale: str, addresses: dict[str, str], data: pathlib.Path, scratch: pathlib.Path, options: list[str]
) -> int:
    url = addresses["gateway"]

    def command(*arguments: str, given: str = "") -> str:
        line = [onsale, "--data-dir", str(data), *arguments]
        return subprocess.run(line, check=True, capture_output=True, text=True, input=given).stdout.strip()

    tokens = {
        "ONSALE_BUYER": command("token", "--user", BUYER),
        "ONSALE_OPERATOR": command("token", "--operator"),
        "ONSALE_OPERATOR_TOKEN": signed_in(url),
        "ONSALE_UNSIGNED": "to-be-signed",
        "ONSALE_STRIPE": json.loads((data / "secrets.json").read_text())["stripe"],
    }
    document = scratch / "openapi.json"
    document.write_text(json.dumps(prepare(addresses, tokens, command)))
    run = [
        str(pathlib.Path(sys.executable).with_name("schemathesis")),
        *("--config-file", str(HERE / "schemathesis.toml"), "run", str(document), "--url", url),
        # A busy machine makes requests slowly, which says nothing of the API.
        *("--suppress-health-check", "too_slow"),
        *options,
    ]
    environment = os.environ | tokens | {"SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(HERE)}
    attacked = subprocess.run(run, env=environment, cwd=scratch).returncode
    audited = subprocess.run([onsale, "--data-dir", str(data), "audit", "--wait-seconds", "120"]).returncode
    return attacked or audited


def signed_in(url: str) -> str:
    """The access token of an operator with every scope, who signs in at the engine's own issuer as pages do."""
    settings = requests.get(f"{url}/config.json", timeout=30).json()["operators"]
    issuer, client = settings["issuer"], {"client_id": settings["client_id"], "redirect_uri": f"{url}/signed-in"}
    verifier = secrets.token_urlsafe(48)
    digest = hashlib.sha256(verifier.encode()).digest()
    form = client | {
        "response_type": "code",
        "scope": settings["scope"],
        "state": "state",
        "nonce": "nonce",
        "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        "code_challenge_method": "S256",
        "name": "operator",
        "chosen": [scope for scope in settings["scope"].split() if scope != "openid"],
    }
    reply = requests.post(f"{issuer}/authorize", data=form, allow_redirects=False, timeout=30)
    [code] = urllib.parse.parse_qs(urllib.parse.urlsplit(reply.headers["location"]).query)["code"]
    grant = client | {"grant_type": "authorization_code", "code": code, "code_verifier": verifier}
    reply = requests.post(f"{issuer}/token", data=grant, timeout=30)
    reply.raise_for_status()
    return reply.json()["access_token"]


def prepare(addresses: dict[str, str], tokens: dict[str, str], command: Callable[..., str]) -> dict:
    """Publishes the sale of the document's examples, orders something of it, and puts what exists in the
    place of the examples' order and admission, so that requests get as far as they can."""
    url = addresses["gateway"]
    document = requests.get(f"{url}/openapi.json", timeout=30).json()

    def example(path: str, method: str, name: str) -> dict:
        body = document["paths"][path][method]["requestBody"]["content"]["application/json"]
        return body["examples"][name]["value"]

    def send(method: str, path: str, who: str, body: dict) -> dict:
        headers = {"Authorization": f"Bearer {tokens[who]}"}
        reply = requests.request(method, url + path, json=body, headers=headers, timeout=30)
        reply.raise_for_status()
        return reply.json()

    # A sale of a million seats is taken, and a build for development lays it out for half a minute: that is a
    # question of speed. Whether the limit holds is tested in tests/it/hostile/sale_files.rs.
    spots = document["components"]["schemas"]["TierFile"]["properties"]["general_admission"]
    spots["maximum"] = 10_000

    def train() -> dict:
        return json.loads(json.dumps(example("/sales/{sale}", "put", "train")))

    # What asks for a waiting room asks for that of another sale: at this one anybody may buy.
    with_room = train() | {"sale": "with-room", "room": {"draw_lead_seconds": 1, "beacon": "operator"}}
    opens_at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=OPENS_SECONDS)
    with_room["opens_at"] = opens_at.strftime("%Y-%m-%dT%H:%M:%SZ")
    send("PUT", "/sales/with-room", "ONSALE_OPERATOR", with_room)
    send("POST", "/sales/with-room/places", "ONSALE_BUYER", {})
    for path, item in document["paths"].items():
        if path.startswith(("/sales/{sale}/room", "/sales/{sale}/places", "/sales/{sale}/visits", "/s/{sale}/room")):
            [of] = [parameter for parameter in item["parameters"] if parameter["name"] == "sale"]
            of["example"] = "with-room"
    wait_until_drawn(f"{url}/sales/with-room/room")

    # What asks for a map asks for that of a sale that has one.
    mapped = json.loads(json.dumps(example("/sales/{sale}", "put", "room")))
    mapped.pop("room")
    send("PUT", f"/sales/{mapped['sale']}", "ONSALE_OPERATOR", mapped)
    [of] = [one for one in document["paths"]["/sales/{sale}/map"]["parameters"] if one["name"] == "sale"]
    of["example"] = mapped["sale"]

    # What an operator says of a sale is said of that one: the train must stay on sale.
    [of] = [one for one in document["paths"]["/operator/sales/{sale}/commands"]["parameters"] if one["name"] == "sale"]
    of["example"] = mapped["sale"]

    # A picture and a document that are there.
    [picture] = [one for one in document["paths"]["/pictures/{picture}"]["parameters"] if one["name"] == "picture"]
    send("PUT", f"/pictures/{picture['example']}", "ONSALE_OPERATOR", example("/pictures/{picture}", "put", "grey"))
    concert = example("/sales/{sale}", "put", "concert")
    shown = send("PUT", f"/sales/{concert['sale']}", "ONSALE_OPERATOR", concert)
    [of] = [one for one in document["paths"]["/documents/{document}"]["parameters"] if one["name"] == "document"]
    of["example"] = shown["event"]["about"]

    file = train()
    file["gate"]["user_lock_ms"] = 1
    file["refunds"] = {"until": "2099-01-01T00:00:00Z"}
    sale = f"/sales/{file['sale']}"
    send("PUT", sale, "ONSALE_OPERATOR", file)

    best = example("/sales/{sale}/orders", "post", "standing")

    def admission() -> dict:
        return send("POST", f"{sale}/admissions", "ONSALE_BUYER", {"tickets": 1})

    def ordered() -> str:
        admitted = admission()
        send("POST", f"{sale}/orders", "ONSALE_BUYER", best | {"admission": admitted["token"]})
        return admitted["order"]

    text = json.dumps(document)
    text = text.replace(example("/sales/{sale}/orders", "post", "best")["admission"], admission()["token"])
    [parameter] = document["paths"]["/orders/{order}"]["parameters"]
    document = json.loads(text.replace(parameter["example"], ordered()))

    # An order is paid from a wallet that has the money.
    money = example("/sales/{sale}", "put", "top_ups")
    money["gate"]["user_lock_ms"] = 1
    send("PUT", f"/sales/{money['sale']}", "ONSALE_OPERATOR", money)
    admitted = send("POST", f"/sales/{money['sale']}/admissions", "ONSALE_BUYER", {"tickets": 1})
    lines = [{"tier": money["tiers"][0]["tier"], "best": {"count": 1}}]
    send("POST", f"/sales/{money['sale']}/orders", "ONSALE_BUYER", {"admission": admitted["token"], "lines": lines})
    start = {"provider": "stripe", "return_url": f"{url}/checkout/{admitted['order']}"}
    started = send("POST", f"/orders/{admitted['order']}/payments", "ONSALE_BUYER", start)
    command("pay", "--order", admitted["order"])
    [parameter] = document["paths"]["/orders/{order}/payments/wallet"]["parameters"]
    parameter["example"] = ordered()

    # A refund is asked for of an order that is paid: of each path another, so that each is granted one.
    for path in ("/orders/{order}/refunds", "/orders/{order}/refunds/operator", "/operator/orders/{order}/refunds"):
        order = ordered()
        command("pay", "--order", order)
        item = document["paths"][path]
        [parameter] = item["parameters"]
        parameter["example"] = order
        body = item["post"]["requestBody"]["content"]["application/json"]
        body["examples"] = {"whole": {"value": {"number": 1, "tickets": "all"}}}

    # An operator says what becomes of a payment that names an order which is not there.
    lost = str(int(order) - 2**40)
    intent = captured(addresses["provider"], started["url"], lost)
    event = {"id": "evt_1", "object": "event", "type": "payment_intent.succeeded", "created": intent["created"]}
    body = json.dumps(event | {"data": {"object": intent}})
    headers = {"Content-Type": "application/json", "Stripe-Signature": command("sign", given=body)}
    reply = requests.post(f"{url}/payments/stripe/callback", data=body, headers=headers, timeout=30)
    reply.raise_for_status()
    body = document["paths"]["/operator/unmatched"]["post"]["requestBody"]["content"]["application/json"]
    for one in body["examples"].values():
        one["value"] |= {"order": lost, "payment": intent["id"]}
    return document


def captured(provider: str, checkout: str, order: str) -> dict:
    """Captures a payment that names an order and carries the deployment's id, as one that was started does."""

    def stripe(method: str, path: str, form: dict | None = None) -> dict:
        headers = {"Authorization": "Bearer sk_test_onsale", "Stripe-Version": "2025-03-31.basil"}
        reply = requests.request(method, provider + path, data=form, headers=headers, timeout=30)
        reply.raise_for_status()
        return reply.json()

    session = urllib.parse.urlsplit(checkout).path.rsplit("/", 1)[-1]
    deployment = stripe("GET", f"/v1/checkout/sessions/{session}")["metadata"]["onsale_deployment"]
    metadata = {"metadata[onsale_deployment]": deployment, "metadata[onsale_order]": order}
    return stripe("POST", "/v1/payment_intents", {"amount": 12_000, "currency": "cny", "confirm": "true"} | metadata)


def wait_until_drawn(room: str) -> None:
    """Waits until a waiting room serves: then its leaves and windows are there to be asked for."""
    until = time.monotonic() + 120
    while requests.get(room, timeout=30).json()["state"] in ("joining", "drawing", "drawn"):
        if time.monotonic() > until:
            raise TimeoutError("the waiting room was not drawn")
        time.sleep(0.2)


sys.exit(main())
