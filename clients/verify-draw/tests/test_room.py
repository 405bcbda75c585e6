"""A room's verdicts, and what each tampering with it gives."""

import contextlib
import io
import json
import os
import re
import shlex
import tempfile
import unittest
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from verify_draw.__main__ import main

from . import reference, room
from .room import CLOSES, OPENS, STOCK, Room, time_ms

WATCHER = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
VIOLATION = re.compile("(record|chain|seed|beacon|arithmetic|leaves|chunk|root|place|empty|not_drawn|early|run_out|twice|unknown"
                       "|stock|no_admission|unseen|not_included): ")


def key(watcher=WATCHER):
    return watcher.public_key().public_bytes_raw().hex()


def saw(digest, at_ms, watcher=WATCHER, address="https://onsale.example/rooms/gig-2027"):
    said = f"onsale room watch\n{digest}\n{at_ms}\n{address}".encode()
    return {"hash": digest, "at_ms": at_ms, "address": address, "key": key(watcher), "signature": watcher.sign(said).hex()}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.room = Room()

    def verify(self, *arguments, chain=True):
        said = []
        chains = ["--chain", room.chain_argument()] if chain else []
        self.code = main([str(self.folder), *chains, *arguments], said.append)
        self.said = said
        return said[-1] if said else None

    def expect(self, verdict, *arguments, **options):
        """Writes the room and verifies it."""
        self.room.write(self.folder)
        self.assertEqual(self.verify(*arguments, **options), verdict, self.said)
        self.assertEqual(self.code, {"witnessed": 0, "wrong": 1}.get(verdict, 3))

    def wrong(self, *violations, arguments=(), write=True, **options):
        """The verdict is wrong, by exactly these violations."""
        if write:
            self.room.write(self.folder)
        self.assertEqual(self.verify(*arguments, **options), "wrong", self.said)
        self.assertEqual(self.code, 1)
        found = {match[1] for match in map(VIOLATION.match, self.said) if match}
        self.assertEqual(found, set(violations), self.said)

    def others(self):
        """Writes the room, for a change of the files beside the log; `self.room.write_others` writes them again."""
        self.room.write(self.folder)
        return self.room

    def state(self, number, change):
        self.room.after.append(lambda records: change(records[number]["state"]))

    def watch(self, *lines):
        (self.folder / "seen.jsonl").write_bytes("".join(json.dumps(line) + "\n" for line in lines).encode())
        return ["--seen", str(self.folder / "seen.jsonl"), "--watcher", key()]


class Verdicts(Case):
    def test_an_honest_room_that_a_watcher_saw_is_witnessed(self):
        self.room.write(self.folder)
        self.assertEqual(self.verify(*self.watch(saw(self.room.hashes[1], CLOSES + 5000))), "witnessed", self.said)
        self.assertEqual(self.code, 0)

    def test_without_a_watcher_it_is_not(self):
        self.expect("not witnessed: not_seen")

    def test_a_watcher_who_saw_it_after_the_round_or_another_record_is_no_witness(self):
        self.room.write(self.folder)
        for line in (saw(self.room.hashes[1], time_ms(self.room.round)), saw(self.room.hashes[0], CLOSES + 5000)):
            self.assertEqual(self.verify(*self.watch(line)), "not witnessed: not_seen")
            self.assertEqual(self.code, 3)

    def test_every_watcher_who_is_named_must_have_seen_it(self):
        self.room.write(self.folder)
        other = Ed25519PrivateKey.from_private_bytes(bytes(32))
        lines = [saw(self.room.hashes[1], CLOSES + 5000)]
        self.assertEqual(self.verify(*self.watch(*lines), "--watcher", key(other)), "not witnessed: not_seen")
        lines.append(saw(self.room.hashes[1], CLOSES + 6000, other))
        self.assertEqual(self.verify(*self.watch(*lines), "--watcher", key(other)), "witnessed")

    def test_a_line_with_a_false_signature_or_by_somebody_else_does_not_count(self):
        self.room.write(self.folder)
        false = dict(saw("00" * 32, CLOSES), at_ms=CLOSES + 1)
        other = saw("00" * 32, CLOSES, Ed25519PrivateKey.from_private_bytes(bytes(32)))
        for line in (false, other, dict(false, signature="00"), dict(false, address="\ud800")):
            self.assertEqual(self.verify(*self.watch(line)), "not witnessed: not_seen")

    def test_a_late_closing(self):
        late = time_ms(self.room.round) + 200
        self.room.turns[0][0] = late
        decides = -(-(self.room.round + 1) // 200) * 200
        self.room.turns[1][:2] = time_ms(decides), [self.room.drawn("main", decides), self.room.drawn("club", decides)]
        # It is drawn after the opening here: nothing is served before.
        self.room.turns[2:] = [turn for turn in self.room.turns[2:] if turn[0] > time_ms(decides)]
        self.room.admitted = []
        self.expect("not witnessed: late (not verifiable against the operator)")

    def test_an_export_before_the_draw(self):
        self.room.turns = self.room.turns[:1]
        self.room.admitted = []
        self.expect("not witnessed: not_drawn (not verifiable against the operator)")

    def test_a_room_without_members(self):
        for group in self.room.leaves:
            self.room.leaves[group] = []
        self.room.closing.cache_clear()
        closings = [{"closed": {"group": group, "closing": {"count": 0, "root": reference.sha256(b"").hex()}}} for group in self.room.leaves]
        self.room.turns = [[CLOSES, closings, self.room.given([0, 0])], *self.room.turns[1:2]]
        self.room.turns[1][2] = self.room.given([0, 0])
        self.room.admitted = []
        self.expect("not witnessed: not_seen")

    def test_a_secret(self):
        secret = bytes(range(32))
        self.room.draw = {"secret": reference.sha256(secret).hex()}
        self.room.turns[1][1] = [{"drawn": {"group": group, "source": {"secret": secret.hex()}}} for group in self.room.leaves]
        self.expect("not witnessed: secret (not verifiable against the operator)", "--seen", self.room.draw["secret"])

    def test_a_beacon_that_was_given_up(self):
        self.give_up(3_600_000)
        self.expect("not witnessed: given_up (not verifiable against the operator)")

    def give_up(self, after):
        self.room.turns[1][:2] = time_ms(self.room.round) + after, [
            {"command": {"beacon_given_up": {"by": "Zoë", "randomness": "5a" * 32}}}
        ]
        self.room.turns[2:] = [[at_ms + 3_600_000, *rest] for at_ms, *rest in self.room.turns[2:]]

    def test_a_room_of_rules_1(self):
        self.old()
        self.expect("not witnessed: rules_1 (not verifiable against the operator)")
        self.assertFalse((self.folder / "orders.jsonl").exists())

    def old(self, latest=None, secret=None):
        """Makes the room one of rules 1, in which the time went back once."""
        self.room.rules = 1
        self.room.draw = {"commitment": reference.sha256(bytes(32)).hex(), "beacon": room.CHAIN}
        for closed in self.room.turns[0][1]:
            said = closed["closed"]
            said["closing"] = dict(said["closing"], latest_round=self.room.round - 8 if latest is None else latest[0])
        if secret:
            self.room.turns[1][1] = [{"drawn": {"group": group, "source": {"secret": secret}}} for group in self.room.leaves]
        self.room.turns[5][0] -= 3000

    def test_a_room_of_rules_1_whose_secret_decided(self):
        self.old(secret="00" * 32)
        self.expect("not witnessed: secret, rules_1 (not verifiable against the operator)")

    def test_hashes_that_somebody_saw(self):
        self.expect("not witnessed: not_seen", "--seen", self.others().hashes[4], "--seen", self.room.closing("club")["root"])

    def test_a_buyer_is_at_an_index(self):
        buyer = ["--buyer", Room.buyer(2105 - 10), "--nonce", Room.nonce(2095).hex(), "--index", "2095"]
        self.expect("not witnessed: not_seen", *buyer)
        place, _ = self.room.place("main", 2095)
        self.assertIn(f"index 2095 of the group main is {Room.buyer(2095)}, at place {place}", self.said)

    def test_what_is_printed_has_no_control_characters(self):
        self.others().admissions[0]["group"] = "x\nwitnessed\x1b[2J"
        self.room.write_others()
        self.verify()
        self.assertEqual(self.code, 1)
        self.assertFalse([line for line in self.said if not line.isprintable()])


class Commands(Case):
    def fails(self, *arguments):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            try:
                code = main([str(self.folder), *arguments], lambda line: None)
            except SystemExit as left:
                code = left.code
        self.assertEqual(code, 2, said.getvalue())
        self.assertTrue(said.getvalue())

    def test_files_that_cannot_be_read(self):
        self.fails()
        for name in ("leaves", "admissions", "orders"):
            self.room.write(self.folder)
            path = self.folder / f"{name}.jsonl"
            for text in ("no JSON\n", "[]\n", '{"group":3}\n', "\n"):
                path.write_text(text)
                self.fails("--chain", room.chain_argument())
            path.unlink()
            self.fails("--chain", room.chain_argument())

    def test_commands_that_are_wrong(self):
        self.room.write(self.folder)
        self.fails("--chain", "ab:cd")
        self.fails("--watcher", "ab")
        self.fails("--index", "3")
        self.fails("--index", "-3", "--buyer", "b", "--nonce", "00" * 16)
        self.fails("--index", "3", "--buyer", "b", "--nonce", "00")
        self.fails("--chain", room.chain_argument(), "--seen", str(self.folder / "nothing"))


class TamperedLogs(Case):
    def test_a_record_that_was_changed_afterwards(self):
        def change(lines):
            lines[1] = lines[1].replace(b'"free":20000', b'"free":20001')

        self.room.chained.append(change)
        self.wrong("chain")

    def test_a_record_left_out(self):
        self.room.chained.append(lambda lines: lines.pop(20))
        # All later numbers are wrong, and the state is not what follows from the record before.
        self.room.write(self.folder)
        self.verify()
        self.assertTrue(any(line.startswith("chain: record 20 ") for line in self.said), self.said)
        self.assertTrue(any(line.startswith("record: record 20 has the number 21") for line in self.said), self.said)

    def test_records_swapped(self):
        def swap(lines):
            lines[-2:] = lines[:-3:-1]

        self.room.chained.append(swap)
        self.wrong("record", "chain", "arithmetic")

    def test_a_record_that_is_not_canonical(self):
        def space(lines):
            lines[-1] = lines[-1].replace(b",", b", ", 1)

        self.room.chained.append(space)
        self.wrong("record")

    def test_a_number_with_an_exponent(self):
        def exponent(lines):
            lines[-1] = lines[-1].replace(b'"free":20000', b'"free":2e4')

        self.room.chained.append(exponent)
        self.wrong("record")

    def test_a_file_without_records(self):
        self.room.chained.append(lambda lines: lines.clear())
        self.wrong("record")

    def test_a_log_that_does_not_begin_with_a_publication(self):
        self.room.chained.append(lambda lines: lines.pop(0))
        self.wrong("record")

    def test_a_second_publication(self):
        self.room.after.append(lambda records: records[3].update(entry=records[0]["entry"]))
        self.wrong("record")

    def test_another_number(self):
        self.room.after.append(lambda records: records[31].update(number=32))
        self.wrong("record")

    def test_a_first_record_with_a_predecessor(self):
        self.room.write(self.folder)
        path = self.folder / "log.jsonl"
        path.write_bytes(path.read_bytes().replace(b'"before":"00', b'"before":"01', 1))
        self.wrong("chain", write=False)

    def test_time_that_goes_back(self):
        self.room.turns[20][0] = self.room.turns[19][0] - 1
        self.room.turns[0][2]["free"] = STOCK
        self.room.write(self.folder)
        self.verify()
        self.assertIn("record: record 21: time goes back", self.said)

    def test_an_early_closing(self):
        self.room.turns[0][0] = CLOSES - 1
        self.wrong("record")

    def test_a_group_closed_twice(self):
        self.room.turns[0][1].append(self.room.turns[0][1][0])
        self.wrong("record")

    def test_a_group_that_is_not_there(self):
        self.room.turns[-1][1].append({"closed": {"group": "nobody", "closing": self.room.closing("club")}})
        self.wrong("record")

    def test_a_draw_before_the_closing(self):
        self.room.turns.insert(0, [CLOSES, [self.room.drawn("main")], self.room.given([2100, 5])])
        self.room.admitted = []
        self.wrong("record")

    def test_a_group_drawn_twice(self):
        self.room.turns[2][1] = [self.room.drawn("main")]
        self.room.admitted = []
        self.wrong("record")

    def test_a_draw_before_the_round_is_out(self):
        self.room.turns[1][0] = time_ms(self.room.round) - 1
        self.wrong("record")

    def test_another_round(self):
        self.room.turns[1][1] = [self.room.drawn("main", self.room.round - 1), self.room.drawn("club")]
        self.wrong("record")

    def test_the_signature_of_another_round(self):
        self.room.turns[1][1] = [self.room.drawn("main", signed=self.room.round - 1), self.room.drawn("club")]
        self.wrong("beacon")

    def test_a_signature_at_infinity(self):
        self.room.turns[1][1][0]["drawn"]["source"]["beacon"]["signature"] = "c0" + "00" * 47
        self.wrong("beacon")

    def test_a_late_closing_drawn_by_the_named_round(self):
        self.room.turns[0][0] = time_ms(self.room.round)
        self.wrong("record")

    def test_another_genesis(self):
        self.room.draw["beacon"]["genesis"] += 3
        self.wrong("beacon")

    def test_another_period(self):
        self.room.draw["beacon"]["period"] = 1
        self.wrong("beacon")

    def test_a_chain_that_nobody_knows(self):
        self.wrong("beacon", chain=False)

    def test_a_chain_with_another_key(self):
        other = room.chain_argument().split(":")
        other[1] = room.public_key(99).hex()
        self.wrong("beacon", chain=False, arguments=["--chain", ":".join(other)])

    def test_a_named_round_that_is_not_the_one_of_the_times(self):
        self.room.round -= 1
        self.room.draw["beacon"]["round"] -= 1
        for number in (0, 1):
            self.room.turns[1][1][number] = self.room.drawn(("main", "club")[number])
        self.wrong("record")

    def test_a_short_lead(self):
        self.room.settings["closes_at_ms"] = OPENS - 239_999
        self.room.round = (OPENS - 59_999 - 1000 * room.GENESIS) // (1000 * room.PERIOD) + 1
        self.room.draw["beacon"]["round"] = self.room.round
        self.room.turns[0][0] = OPENS - 239_999
        self.room.turns[1] = [time_ms(self.room.round) + 500, [self.room.drawn("main"), self.room.drawn("club")], self.room.given([2110, 5])]
        self.wrong("record")

    def test_a_room_published_less_than_an_hour_before_its_round(self):
        self.room.after.append(lambda records: records[0].update(at_ms=time_ms(self.room.round) - 3_599_999))
        self.wrong("record")

    def test_settings_out_of_bounds(self):
        self.room.settings["show_up_ms"] = 125_000
        self.wrong("record")

    def test_another_seed(self):
        self.state(1 + 1, lambda state: state["groups"][0].update(seed="12" * 32))
        self.room.turns = self.room.turns[:2]
        self.room.admitted = []
        self.wrong("seed")

    def test_a_seed_that_nothing_drew(self):
        self.room.turns = self.room.turns[:1]
        self.room.admitted = []
        self.state(1, lambda state: state["groups"][1].update(seed="12" * 32))
        self.wrong("arithmetic")

    def test_one_place_more_is_served(self):
        self.state(4, lambda state: state["groups"][0].update(serving=state["groups"][0]["serving"] + 1))
        self.wrong("arithmetic")

    def test_one_place_of_another_group_is_served(self):
        def change(state):
            state["groups"][0]["serving"] -= 1
            state["groups"][1]["serving"] += 1

        self.state(3, change)
        self.room.admitted = []
        self.wrong("arithmetic")

    def test_another_capacity(self):
        self.state(31, lambda state: state.update(limit_milli=state["limit_milli"] - 1))
        self.wrong("arithmetic")

    def test_another_first_state(self):
        self.state(0, lambda state: state.update(steady_ms=4999))
        self.wrong("arithmetic")

    def test_places_run_out_too_early(self):
        self.state(20, lambda state: state["groups"][0].update(passed=100))
        self.room.admitted = []
        self.wrong("arithmetic")

    def test_a_beacon_given_up_too_early(self):
        Verdicts.give_up(self, 3_599_999)
        self.wrong("record")

    def test_a_beacon_given_up_that_nobody_waits_for(self):
        self.room.turns[5][1] = [{"command": {"beacon_given_up": {"by": "x", "randomness": "5a" * 32}}}]
        self.wrong("record")

    def test_a_command_after_the_close(self):
        self.room.turns[-2][1] = [{"command": "close"}]
        self.room.turns[-1][1] = [{"command": {"notice": "over"}}, {"command": "resume"}]
        self.wrong("record")

    def test_a_notice_too_long(self):
        self.room.turns[-1][1] = [{"command": {"notice": "ü" * 101}}]
        self.wrong("record")

    def test_a_notice_with_control_characters(self):
        self.room.turns[-1][1] = [{"command": {"notice": "a\u0085b"}}]
        self.wrong("record")

    def test_another_secret(self):
        self.room.draw = {"secret": "77" * 32}
        self.room.turns[1][1] = [{"drawn": {"group": group, "source": {"secret": "00" * 32}}} for group in self.room.leaves]
        self.wrong("record")

    def test_a_secret_where_a_beacon_decides(self):
        self.room.turns[1][1] = [{"drawn": {"group": group, "source": {"secret": "00" * 32}}} for group in self.room.leaves]
        self.wrong("record")

    def test_rules_1_another_round(self):
        Verdicts.old(self, latest=[self.room.round - 7])
        self.wrong("record")

    def test_rules_1_a_closing_without_a_round_too_early(self):
        Verdicts.old(self, latest=[None], secret="00" * 32)
        self.wrong("record")


class TamperedLeaves(Case):
    def tampered(self, change, *violations):
        change(self.others().chunks)
        self.room.write_others()
        self.wrong(*violations, write=False)

    def test_a_leaf_replaced(self):
        self.tampered(lambda chunks: chunks[0]["leaves"].__setitem__(3, "ee" * 32), "chunk", "root")

    def test_a_leaf_made_empty(self):
        def change(chunks):
            chunks[1]["leaves"][0] = reference.sha256(b"\0").hex()

        self.tampered(change, "chunk", "root")

    def test_leaves_swapped(self):
        def change(chunks):
            leaves = chunks[1]["leaves"]
            leaves[4], leaves[5] = leaves[5], leaves[4]

        self.tampered(change, "chunk", "root")

    def test_a_leaf_dropped(self):
        self.tampered(lambda chunks: chunks[2]["leaves"].pop(), "leaves", "chunk", "root")

    def test_a_late_join(self):
        self.tampered(lambda chunks: chunks[2]["leaves"].append("ee" * 32), "leaves", "chunk", "root")

    def test_a_chunk_dropped(self):
        self.tampered(lambda chunks: chunks.pop(1), "chunk", "leaves", "root")

    def test_a_chunk_twice(self):
        self.tampered(lambda chunks: chunks.insert(1, chunks[0]), "chunk", "leaves", "root")

    def test_a_chunk_beyond_the_last(self):
        self.tampered(lambda chunks: chunks.insert(3, dict(chunks[2], chunk=3)), "leaves", "chunk", "root")

    def test_chunks_in_another_order(self):
        self.tampered(lambda chunks: chunks.__setitem__(slice(0, 2), chunks[1::-1]), "chunk", "root")

    def test_a_group_left_out(self):
        self.tampered(lambda chunks: chunks.pop(), "leaves", "root")

    def test_groups_in_another_order(self):
        self.tampered(lambda chunks: chunks.insert(0, chunks.pop()), "leaves")

    def test_a_group_that_is_not_there(self):
        self.tampered(lambda chunks: chunks.append(dict(chunks[-1], group="nobody")), "leaves")

    def test_a_path_changed(self):
        self.tampered(lambda chunks: chunks[1]["path"].__setitem__(1, "ee" * 32), "chunk")

    def test_a_path_too_long(self):
        self.tampered(lambda chunks: chunks[3]["path"].append("ee" * 32), "chunk")


class TamperedAdmissions(Case):
    def tampered(self, change, *violations):
        change(self.others().admissions)
        self.room.write_others()
        self.wrong(*violations, write=False)

    def test_a_pair_of_places_swapped(self):
        def change(admissions):
            first, second = admissions[0], admissions[1]
            first["place"], second["place"] = second["place"], first["place"]

        self.tampered(change, "place")

    def test_an_index_without_a_member(self):
        self.tampered(lambda admissions: admissions.append(self.room.admission("main", 7)), "empty")

    def test_an_index_twice(self):
        self.tampered(lambda admissions: admissions.append(dict(admissions[0], turn=admissions[0]["turn"] + 1)), "twice")

    def test_an_admission_too_early(self):
        def change(admissions):
            next(one for one in admissions[1::2] if one["turn"] > 4)["turn"] -= 1

        self.tampered(change, "early")

    def test_an_admission_after_the_place_ran_out(self):
        self.tampered(lambda admissions: admissions[1].update(turn=30), "run_out")

    def test_an_unknown_turn(self):
        self.tampered(lambda admissions: admissions[1].update(turn=32), "unknown")

    def test_an_unknown_group(self):
        self.tampered(lambda admissions: admissions[1].update(group="nobody"), "unknown")

    def test_an_index_that_nobody_drew(self):
        self.tampered(lambda admissions: admissions.append({"group": "main", "index": 2130, "place": 0, "turn": 25}), "not_drawn")

    def test_an_index_before_its_draw(self):
        self.tampered(lambda admissions: admissions[1].update(turn=1), "not_drawn")

    def test_a_later_window_by_the_record_that_ended_it(self):
        # Record 10 ends the window of the indices 2120 to 2129.
        self.tampered(lambda admissions: admissions.append(dict(self.room.admission("main", 2125), turn=10)), "not_drawn")

    def test_another_place_of_a_later_window(self):
        def change(admissions):
            one = next(one for one in admissions if one["index"] == 2115)
            one["place"] = 2110 + (one["place"] - 2109) % 10

        self.tampered(change, "place")


class TamperedOrders(Case):
    def tampered(self, change, *violations, arguments=()):
        change(self.others())
        self.room.write_others()
        self.wrong(*violations, write=False, arguments=arguments)

    def test_an_order_left_out(self):
        self.tampered(lambda room: room.orders.pop(3), "stock")

    def test_more_seats_left(self):
        self.tampered(lambda room: room.left.update(left=room.left["left"] + 1), "stock")

    def test_an_order_without_its_admission(self):
        self.tampered(lambda room: room.admissions.pop(0), "no_admission")

    def test_an_order_by_another_turn(self):
        self.tampered(lambda room: room.orders[0].update(turn=room.orders[0]["turn"] + 1), "no_admission")

    def test_an_order_of_somebody_without_a_place(self):
        def change(room):
            room.orders[0] = {"seat_legs": room.orders[0]["seat_legs"]}

        self.tampered(change, "no_admission")

    def test_an_order_of_a_group_that_is_not_there(self):
        self.tampered(lambda room: room.orders[0].update(group="nobody"), "no_admission")

    def test_a_log_without_what_a_watcher_saw(self):
        self.room.write(self.folder)
        self.wrong("unseen", write=False, arguments=self.watch(saw("ef" * 32, CLOSES)))

    def test_a_log_without_what_somebody_saw(self):
        self.room.write(self.folder)
        self.wrong("unseen", write=False, arguments=["--seen", "ef" * 32])

    def test_a_buyer_who_is_not_there(self):
        self.room.write(self.folder)
        arguments = ["--index", "3", "--buyer", Room.buyer(4), "--nonce", Room.nonce(3).hex()]
        self.wrong("not_included", write=False, arguments=arguments)


@unittest.skipUnless(os.environ.get("ONSALE_DRAW_EXPORTS"), "ONSALE_DRAW_EXPORTS names no folder of exported rooms")
class Exports(unittest.TestCase):
    """Rooms that `onsale` exported: each folder of $ONSALE_DRAW_EXPORTS with a file `expected`.

    Its first line is the verdict, with or without its reasons; its others are violations that must be among those found. A file
    `arguments` has further arguments, with `DIR` for the folder."""

    def test_every_export_has_its_verdict(self):
        folders = sorted(path.parent for path in Path(os.environ["ONSALE_DRAW_EXPORTS"]).glob("*/expected"))
        self.assertTrue(folders, "no folder has a file `expected`")
        for folder in folders:
            with self.subTest(folder.name):
                verdict, *violations = (folder / "expected").read_text().split("\n")
                violations = {line.strip() for line in violations if line.strip()}
                further = folder / "arguments"
                arguments = shlex.split(further.read_text().replace("DIR", str(folder))) if further.exists() else []
                said = []
                code = main([str(folder), *arguments], said.append)
                self.assertEqual(code, {"witnessed": 0, "wrong": 1, "not witnessed": 3}[verdict.split(":")[0].strip()], said)
                self.assertEqual(said[-1].split(" (")[0], verdict.strip() if ":" in verdict else said[-1].split(" (")[0])
                found = {match[1] for match in map(VIOLATION.match, said) if match}
                self.assertLessEqual(violations, found, said)


if __name__ == "__main__":
    unittest.main()
