"""Random rooms, honest and tampered with, by both verifiers: `onsale verify-draw` of $ONSALE_BIN and this one."""

import copy
import os
import random
import subprocess
import tempfile
import unittest
from pathlib import Path

from verify_draw.__main__ import main

from . import reference, room
from .room import OPENS, Room, written

BINARY = os.environ.get("ONSALE_BIN")
ROOMS = int(os.environ.get("ONSALE_DRAW_ROOMS", "12"))
COUNTS = ("passed_came", "visits", "held")
LOOKS = ("all", "looked", "asked", "lingered", "asked_late")


def random_room(rules, dice):
    """A room of 200 turns: counters that grow and are lost, operators' commands, failing reservations, later windows."""
    made = Room()
    made.rules, made.admitted = rules, []
    made.settings.update(
        max_per_second=dice.choice([1, 3, 50, 1000, 1_000_000]),
        provider_per_second=dice.choice([None, 1, 7, 300]),
        max_requests_per_second=dice.choice([1, 100, 9000]),
        max_units=dice.choice([1, 2, 4, 9, 65535]),
        show_up_ms=dice.choice([120_000, 180_000]),
        visit_ms=dice.choice([180_000, 600_000]),
        window_ms=dice.choice([1000, 7000, 60_000, 600_000]),
    )
    for group in made.settings["groups"]:
        group["share"] = dice.choice([1, 2, 3, 7, 1000])
    if rules == 1:
        made.draw = {"commitment": reference.sha256(bytes(32)).hex(), "beacon": room.CHAIN}
        for event in made.turns[0][1]:
            event["closed"]["closing"] = dict(event["closed"]["closing"], latest_round=made.round - 8)
    made.turns = made.turns[:2]
    at_ms, joined, epoch = OPENS - 20_000, [2100, 5], 3
    counts = dict.fromkeys(("came", "inside", *COUNTS), 0)
    looks = dict.fromkeys(("looking", "lingering", *LOOKS), 0)
    free = dice.choice([0, 1, 20, 900, 5000, 10**6, 10**12])
    people_look, loses = dice.random() < 0.5, dice.choice([0, 0.004, 0.05])
    for _ in range(200):
        at_ms += dice.choice([0, 1, 137, 1000, 1000, 1000, 3000, 5000, 9000, 10_000, 61_000] + [-500] * (rules == 1))
        joined = [joined[0] + dice.choice([0, 0, 1, 40]), joined[1] + dice.choice([0, 0, 0, 3, 300])]
        if dice.random() < 0.3:
            for name in COUNTS:
                counts[name] += dice.choice([0, 0, 3, 50, 2000])
            counts["came"] = dice.choice([counts["came"], dice.randrange(400), 0])
            counts["inside"] = dice.choice([0, 0, counts["inside"], dice.randrange(60)])
        if people_look and dice.random() < 0.3:
            for name in LOOKS:
                looks[name] += dice.choice([0, 0, 3, 80, 3000])
            looks.update(looking=dice.choice([0, dice.randrange(50)]), lingering=dice.choice([0, dice.randrange(20)]))
        if dice.random() < loses:
            epoch, counts, looks = epoch + 1, dict.fromkeys(counts, 0), dict.fromkeys(looks, 0)
        if dice.random() < 0.2:
            free = dice.choice([0, 1, free + 5, max(0, free - 30), 900, 20_000])
        read = {"epoch": epoch, **counts, **({"looks": dict(looks)} if any(looks.values()) else {})}
        bad = dice.choice([0, 0, 0, 1, 4, 30])
        commands = ["pause", "resume", "resume", {"rate": dice.choice([None, 0, 1, 40])}, {"notice": dice.choice([None, 'hö "\\'])},
                    {"sold_out": dice.random() < 0.3}]
        made.turns.append([
            at_ms,
            [{"command": dice.choice(commands)}] if dice.random() < 0.1 else [],
            {
                "free": None if dice.random() < 0.05 else free,
                "joined": list(joined),
                "counts": None if dice.random() < 0.05 else read,
                "reservations": {"all": bad + dice.choice([0, 0, 5, 40]), "bad": bad},
            },
        ])
    return made


def admissions(made, dice):
    """Some admissions by the first turn by which they are due, if they are before they run out."""
    found = []
    for position, group in enumerate(made.members):
        last = made.parsed[-1]["state"]["groups"][position]
        for index in dice.sample(range(last["window_end"]), min(60, last["window_end"])):
            place, first = made.place(group, index)
            for turn in range(first, len(made.parsed)):
                now = made.parsed[turn]["state"]["groups"][position]
                if now["serving"] > place:
                    if now["passed"] <= place and (group, index) not in made.empty:
                        found.append({"group": group, "index": index, "place": place, "turn": turn})
                    break
    return found


def numbers(value, where=()):
    """Where the numbers of a value are."""
    if isinstance(value, dict):
        value = value.items()
    elif isinstance(value, list):
        value = enumerate(value)
    else:
        return [where] if type(value) is int else []
    return [found for name, inner in value for found in numbers(inner, (*where, name))]


@unittest.skipUnless(BINARY, "ONSALE_BIN names no command `onsale`")
class AgainstOnsale(unittest.TestCase):
    def both(self, folder, label):
        """Whether both find the room wrong, or both do not."""
        arguments = [str(folder), "--chain", room.chain_argument()]
        said = []
        mine = main(arguments, said.append)
        ran = subprocess.run([BINARY, "verify-draw", *arguments], capture_output=True, text=True)
        self.assertEqual(mine, ran.returncode, (label, said[-4:], ran.stdout[-600:], ran.stderr[-300:]))
        return mine

    def test_random_rooms(self):
        for seed in range(ROOMS):
            rules, dice = 2 - seed % 2, random.Random(seed)
            with self.subTest(seed), tempfile.TemporaryDirectory() as name:
                folder, made = Path(name), random_room(rules, dice)
                made.write(folder)
                made.admissions, made.orders = admissions(made, dice), []
                made.left["left"] = room.STOCK
                made.write_others()
                self.assertEqual(self.both(folder, "honest"), 3)
                for _ in range(5):
                    self.tamper(made, folder, dice)

    def tamper(self, made, folder, dice):
        """Changes a number of a record, chained again as an operator would."""
        records = copy.deepcopy(made.parsed)
        record = dice.choice(records)
        where = dice.choice(numbers(record))
        inner = record
        for name in where[:-1]:
            inner = inner[name]
        inner[where[-1]] = max(0, inner[where[-1]] + dice.choice([-1000, -1, 1, 1, 1000]))
        lines, before = [], "0" * 64
        for one in records:
            one["before"] = before
            lines.append(written(one))
            before = reference.sha256(lines[-1]).hex()
        (folder / "log.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
        self.both(folder, (record["number"], where))


if __name__ == "__main__":
    unittest.main()
