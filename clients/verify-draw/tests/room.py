"""An honest room, as docs/draw.md describes it, and its files. Tests change what it did, or what it wrote.

The states of its turns are those of `verify_draw.turn`, which test_turn.py holds against numbers computed by hand. All
else is made by tests/reference.py.
"""

import copy
import functools
import json

from verify_draw.turn import first_state, next_state

from . import reference

SECRET_KEY = 0x6F6E73616C65
CHAIN, GENESIS, PERIOD = "ab" * 32, 1_700_000_000, 3
BEGIN = 1_800_000_000_000
CLOSES = BEGIN + 7_200_000
OPENS = CLOSES + 600_000
SALE = "gig-2027"
STOCK = 20_000
STATE = (
    "mode clock_ms idle_ms rate notice sold_out tripped limit_milli steady_ms carry_milli comes holds looks counters groups gave"
).split()

sign = functools.lru_cache(None)(reference.sign)
public_key = functools.lru_cache(None)(reference.public_key)
leaf = functools.lru_cache(None)(reference.leaf)


def chain_argument():
    return f"{CHAIN}:{public_key(SECRET_KEY).hex()}:{GENESIS}:{PERIOD}"


def time_ms(number):
    return 1000 * (GENESIS + PERIOD * (number - 1))


def written(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class Room:
    """`turns` are what happened: `[at_ms, events, given]`. `write` computes the records and the other files from it."""

    def __init__(self):
        self.rules = 2
        self.settings = {
            "groups": [{"group": "main", "share": 3}, {"group": "club", "share": 1, "codes": True}],
            "joins_open_at_ms": BEGIN + 1000,
            "closes_at_ms": CLOSES,
            "opens_at_ms": OPENS,
            "registered_only": False,
            "max_per_second": 1000,
            "provider_per_second": 200,
            "max_requests_per_second": 3000,
            "max_units": 4,
            "max_attempts": 3,
            "show_up_ms": 120_000,
            "visit_ms": 600_000,
            "window_ms": 60_000,
        }
        self.round = (OPENS - 60_000 - 1000 * GENESIS) // (1000 * PERIOD) + 1
        self.draw = {"beacon": {"chain": CHAIN, "genesis": GENESIS, "period": PERIOD, "round": self.round}}
        self.members = {"main": 2100, "club": 5}
        self.empty = {("main", 7)}
        self.leaves = {
            group: [
                reference.sha256(b"\0") if (group, index) in self.empty else leaf(SALE, group, index, self.buyer(index), self.nonce(index))
                for index in range(count)
            ]
            for group, count in self.members.items()
        }
        closings = [{"closed": {"group": group, "closing": self.closing(group)}} for group in self.members]
        self.turns = [
            [CLOSES, closings, self.given([2100, 5])],
            [time_ms(self.round) + 500, [self.drawn("main"), self.drawn("club")], self.given([2110, 5])],
            [OPENS, [], self.given([2120, 5])],
            *([OPENS + 1000 * second, [], self.given([2130, 5])] for second in range(1, 14)),
            *([OPENS + 15_000 + 10_000 * step, [], self.given([2130, 5])] for step in range(1, 16)),
        ]
        self.turns[6][1] = [{"command": {"notice": "Guten Tag, \"Zürich\" 🎫"}}, {"command": {"rate": 150}}]
        self.turns[9][1] = [{"command": {"rate": None}}, {"command": {"notice": None}}]
        self.orders = None
        self.admitted = [("main", index) for index in range(0, 400, 3)] + [("main", 2105), ("main", 2115), ("club", 2), ("club", 4)]
        self.after = []  # changes of the records, before they are chained
        self.chained = []  # changes of the lines, after they are chained

    @staticmethod
    def buyer(index):
        return f"bürger-{index}"

    @staticmethod
    def nonce(index):
        return reference.sha256(index.to_bytes(4, "big"))[:16]

    @functools.lru_cache(None)
    def closing(self, group):
        return {"count": len(self.leaves[group]), "root": reference.root(self.leaves[group]).hex()}

    def drawn(self, group, number=None, signed=None):
        number = number or self.round
        signature = sign(SECRET_KEY, signed or number).hex()
        return {"drawn": {"group": group, "source": {"beacon": {"round": number, "signature": signature}}}}

    @staticmethod
    def given(joined, free=STOCK, came=0, inside=0):
        counts = {"epoch": 17, "came": came, "inside": inside, "passed_came": 0, "visits": 0, "held": 0}
        return {"free": free, "joined": joined, "counts": counts, "reservations": {"all": 0, "bad": 0}}

    def seed(self, event, group):
        """The seed that an event gives a group."""
        [(kind, said)] = event.items()
        if kind == "drawn":
            [(by, source)] = said["source"].items()
            if by == "secret":
                return reference.seed(b"\3", bytes.fromhex(source), SALE, group, self.leaves[group])
            signature = bytes.fromhex(source["signature"])
            return reference.seed(b"\2", reference.sha256(signature), SALE, group, self.leaves[group])
        randomness = bytes.fromhex(said["beacon_given_up"]["randomness"])
        return reference.seed(b"\6", randomness, SALE, group, self.leaves[group])

    def published(self):
        if self.rules == 1:
            return {"sale": SALE, "draw": self.draw, "settings": self.settings}
        return {"rules": 2, "sale": SALE, "draw": self.draw, "stock": STOCK, "settings": self.settings}

    def records(self):
        state = first_state(self.settings)
        records = [{"number": 0, "at_ms": BEGIN, "before": "", "entry": {"published": self.published()}, "state": state}]
        names = [group["group"] for group in self.settings["groups"]]
        before = BEGIN
        for number, (at_ms, events, given) in enumerate(self.turns, 1):
            seeds = {}
            for event in events:
                if "drawn" in event and event["drawn"]["group"] in names:
                    seeds[names.index(event["drawn"]["group"])] = self.seed(event, event["drawn"]["group"]).hex()
                elif isinstance(event.get("command"), dict) and "beacon_given_up" in event["command"]:
                    for position, name in enumerate(names):
                        seeds.setdefault(position, self.seed(event, name).hex())
            try:
                state = next_state(self.settings, state, before, at_ms, events, given, seeds)
            except (KeyError, TypeError):
                pass  # an event that cannot be: the state stays
            ordered = {name: state[name] for name in STATE if name in state}
            records.append({"number": number, "at_ms": at_ms, "before": "", "entry": {"turn": {"events": events, "given": given}}, "state": ordered})
            before = at_ms
        return records

    def write(self, folder):
        """Writes the four files, and keeps the lines of the log, `admissions` and `orders`."""
        self.parsed = copy.deepcopy(self.records())
        for change in self.after:
            change(self.parsed)
        self.lines, before = [], "0" * 64
        for record in self.parsed:
            record["before"] = before
            self.lines.append(written(record))
            before = reference.sha256(self.lines[-1]).hex()
        self.hashes = [reference.sha256(line).hex() for line in self.lines]
        self.admissions = [self.admission(*member) for member in self.admitted]
        for change in self.chained:
            change(self.lines)
        if self.orders is None:
            self.orders = [
                {"group": one["group"], "index": one["index"], "turn": one["turn"], "seat_legs": 1 + one["index"] % 4}
                for one in self.admissions[::2]
            ] + [{"operator": "desk", "seat_legs": 12}]
        held = sum(order["seat_legs"] for order in self.orders)
        self.left = {"at_ms": OPENS + 1_000_000, "left": STOCK - held}
        self.chunks = [chunk for group in self.members for chunk in self.chunks_of(group)]
        self.folder = folder
        (folder / "log.jsonl").write_bytes(b"".join(line + b"\n" for line in self.lines))
        self.write_others()

    def write_others(self):
        for name, values in (
            ("leaves", self.chunks), ("admissions", self.admissions), ("orders", [self.left, *self.orders]),
        ):
            if name != "orders" or self.rules == 2:
                (self.folder / f"{name}.jsonl").write_bytes(b"".join(written(value) + b"\n" for value in values))

    def chunks_of(self, group):
        leaves = self.leaves[group]
        cut = [leaves[first : first + 1024] for first in range(0, len(leaves), 1024)]
        roots = [reference.root(chunk) for chunk in cut]
        return [
            {"group": group, "chunk": number, "leaves": [one.hex() for one in chunk], "path": [up.hex() for up in reference.path(number, roots)]}
            for number, chunk in enumerate(cut)
        ]

    def place(self, group, index):
        """The place, and the first record that may be named."""
        position = list(self.members).index(group)
        end = 0
        for number, record in enumerate(self.parsed):
            now = record["state"]["groups"][position]
            if now["seed"] is None:
                continue
            if end == 0:
                end = len(self.leaves[group])
                if index < end:
                    return reference.compute_shuffled_index(index, end, bytes.fromhex(now["seed"])), number
            if now["window_end"] > end:
                first, end = end, now["window_end"]
                if index < end:
                    seed = reference.sha256(b"\4" + bytes.fromhex(self.hashes[number]) + reference.text(group))
                    return first + reference.compute_shuffled_index(index - first, end - first, seed), number + 1
        raise AssertionError(f"no window has the index {index} of {group}")

    def admission(self, group, index):
        """The admission by the first record by which the place is due."""
        position = list(self.members).index(group)
        place, first = self.place(group, index)
        for turn in range(first, len(self.parsed)):
            if self.parsed[turn]["state"]["groups"][position]["serving"] > place:
                return {"group": group, "index": index, "place": place, "turn": turn}
        return {"group": group, "index": index, "place": place, "turn": len(self.parsed) - 1}
