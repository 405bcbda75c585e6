"""Verifies an exported room, and gives the verdict: docs/draw.md."""

import json
import re
from collections import Counter
from pathlib import Path

from . import hashes
from .log import Log
from .records import U64

HASH = re.compile("[0-9a-f]{64}")
SHOWN = 20  # violations of one kind that are printed


class Unreadable(Exception):
    """A file that cannot be read, and why."""


class Report:
    """Violations, and what else is printed."""

    def __init__(self, say=print):
        self._say = say
        self.counts = Counter()

    def say(self, message):
        """Prints one line: a name in the files may have characters that end it or move the cursor."""
        self._say("".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in message))

    def wrong(self, violation, message):
        self.counts[violation] += 1
        if self.counts[violation] <= SHOWN:
            self.say(f"{violation}: {message}")

    def end(self):
        for violation, count in self.counts.items():
            if count > SHOWN:
                self.say(f"{violation}: {count - SHOWN} more")


def lines(path):
    """The values of a file of JSON lines, each with the words that say where it is."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            where = f"{path.name} line {number}"
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as reason:
                raise Unreadable(f"{where}: {reason}") from None
            if not isinstance(value, dict):
                raise Unreadable(f"{where} is no object")
            yield where, value


def member(where, value, name, kind, least=0):
    """Field `name` of a line, which must be of the type `kind`, and at least `least`."""
    found = value.get(name)
    if type(found) is not kind or kind is int and not least <= found <= U64:
        raise Unreadable(f"{where}: {name} is missing or of another type")
    return found


def digests(where, value, name):
    """A list of hashes of 32 bytes."""
    try:
        found = [bytes.fromhex(text) for text in member(where, value, name, list)]
    except (TypeError, ValueError):
        found = [b""]
    if any(len(digest) != 32 for digest in found):
        raise Unreadable(f"{where}: {name} has what is no hash")
    return found


class Leaves:
    """The leaves of the first windows: which indices have no member, and the one that was asked for."""

    def __init__(self, path, log, report, asked=None):
        self.empty = {}
        self.found = None  # the group in which the leaf that was asked for lies at its index
        names = {group.name: group for group in log.groups}
        order = iter(log.groups)
        self.report = report
        self.group = self.tree = None
        done = set()
        for where, value in lines(path):
            name, chunk = member(where, value, "group", str), member(where, value, "chunk", int)
            leaves, path_up = digests(where, value, "leaves"), digests(where, value, "path")
            group = names.get(name)
            if group is None or group.closed is None:
                report.wrong("leaves", f"{where}: the group {name} is not there or not closed")
                continue
            if group is not self.group:
                self._end()
                if name in done:
                    report.wrong("leaves", f"{where}: the group {name} has ended before")
                    self.group = self.tree = None
                    continue
                if not any(other is group for other in order):
                    report.wrong("leaves", f"{where}: the group {name} is not in the order of the settings")
                done.add(name)
                self.group, self.tree, self.chunks, self.leaves = group, hashes.Tree(), 0, 0
                self.empty[name] = bytearray()
            self._chunk(where, chunk, leaves, path_up, asked)
        self._end()
        for group in log.groups:
            if group.closed and group.closed.count and group.name not in done:
                self.group, self.tree, self.leaves = group, hashes.Tree(), 0
                self._end()

    def _chunk(self, where, chunk, leaves, path_up, asked):
        group, closed = self.group, self.group.closed
        count = -(-closed.count // hashes.CHUNK)
        due = min(hashes.CHUNK, closed.count - chunk * hashes.CHUNK)
        if chunk != self.chunks:
            self.report.wrong("chunk", f"{where}: chunk {chunk} is there, and chunk {self.chunks} is due")
        elif len(leaves) != due:
            self.report.wrong("leaves", f"{where}: chunk {chunk} has {len(leaves)} leaves, and {max(due, 0)} are due")
        self.chunks = chunk + 1
        tree = hashes.Tree()
        for leaf in leaves:
            tree.add(leaf)
        root = tree.root()
        up = hashes.root_by_path(root, chunk, count, path_up) if chunk < count else None
        if up is None or up.hex() != closed.root:
            self.report.wrong("chunk", f"{where}: chunk {chunk} of the group {group.name} is not in the tree of the closing")
        self.tree.add(root)
        self.leaves += len(leaves)
        self.empty[group.name].extend(leaf == hashes.EMPTY_LEAF for leaf in leaves)
        if asked and 0 <= asked.index - chunk * hashes.CHUNK < len(leaves):
            leaf = hashes.member_leaf(asked.sale, group.name, asked.index, asked.buyer, asked.nonce)
            if leaves[asked.index - chunk * hashes.CHUNK] == leaf:
                self.found = group

    def _end(self):
        if self.group is None:
            return
        closed = self.group.closed
        if self.leaves != closed.count:
            self.report.wrong("leaves", f"the group {self.group.name} has {self.leaves} leaves, and {closed.count} indices")
        if self.tree.root().hex() != closed.root:
            self.report.wrong("root", f"the leaves of the group {self.group.name} do not give the root of its closing")

    def is_empty(self, group, index):
        """Whether the index is of the first window, and has no member."""
        empty = self.empty.get(group.name, b"")
        return group.closed is not None and index < min(group.closed.count, len(empty)) and bool(empty[index])


def admissions(path, log, leaves, places, report):
    """Checks the admissions, and gives the record that each names, by group and index."""
    positions = {group.name: position for position, group in enumerate(log.groups)}
    turns = {group.name: {} for group in log.groups}
    for where, value in lines(path):
        name = member(where, value, "group", str)
        index, place, turn = (member(where, value, field, int) for field in ("index", "place", "turn"))
        if name not in positions or turn >= len(log.states):
            report.wrong("unknown", f"{where}: there is no group {name!r} or no record {turn}")
            continue
        group = log.groups[positions[name]]
        if index in turns[name]:
            report.wrong("twice", f"{where}: index {index} of the group {name} is admitted a second time")
        turns[name].setdefault(index, turn)
        window = group.window_of(index)
        if window is None or turn < window[3]:
            report.wrong("not_drawn", f"{where}: index {index} of the group {name} is in no draw by record {turn}")
            continue
        if leaves.is_empty(group, index):
            report.wrong("empty", f"{where}: index {index} of the group {name} has no member")
        drawn = places.place(*window[:3], index)
        if drawn != place:
            report.wrong("place", f"{where}: index {index} of the group {name} has the place {drawn}, and not {place}")
        serving, passed = log.states[turn][positions[name]]
        if drawn >= serving:
            report.wrong("early", f"{where}: place {drawn} of the group {name} is not due by record {turn}: it serves {serving}")
        elif drawn < passed:
            report.wrong("run_out", f"{where}: place {drawn} of the group {name} has run out by record {turn}")
    return turns


def orders(path, log, turns, report):
    """Checks the orders against the admissions and the stock."""
    first, held = None, 0
    for where, value in lines(path):
        if first is None:
            first = value
            member(where, value, "at_ms", int, -U64)
            left = member(where, value, "left", int)
            continue
        held += member(where, value, "seat_legs", int)
        if "operator" in value:
            if value["operator"] not in ("desk", "house"):
                report.wrong("no_admission", f"{where}: an order of the operator {value['operator']!r}")
        elif "index" in value:
            name = member(where, value, "group", str)
            index, turn = member(where, value, "index", int), member(where, value, "turn", int)
            if turns.get(name, {}).get(index) != turn:
                report.wrong("no_admission", f"{where}: no admission of index {index} of the group {name} by record {turn}")
        else:
            report.wrong("no_admission", f"{where}: an order without a place")
    if first is None:
        raise Unreadable(f"{path.name} is empty")
    stock = log.published["stock"]
    report.say(f"{stock} seat-legs for sale, {held} in orders, {left} left at {first['at_ms']}; the log ends with {log.free} free")
    if left + held != stock:
        report.wrong("stock", f"{stock} seat-legs are for sale, and {held} in orders and {left} left are {held + left}")


def signed(line):
    """Whether the line has its watcher's Ed25519 signature."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    said = f"onsale room watch\n{line['hash']}\n{line['at_ms']}\n{line['address']}"
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(line["key"])).verify(bytes.fromhex(line["signature"]), said.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def watched(files, watchers, log, report):
    """The lines that count: signed, and by a watcher who is named. By key: hash -> the earliest time."""
    seen = {key: {} for key in watchers}
    for path in files:
        for where, line in lines(Path(path)):
            for name in ("hash", "address", "key", "signature"):
                member(where, line, name, str)
            at_ms = member(where, line, "at_ms", int, -U64)
            if line["key"] not in seen:
                continue
            if not signed(line):
                report.say(f"{where}: the signature is not that of its key: it does not count")
                continue
            if line["hash"] not in log.hashes:
                report.wrong("unseen", f"{where}: a watcher saw the record {line['hash']}, which the log has not")
            times = seen[line["key"]]
            times[line["hash"]] = min(at_ms, times.get(line["hash"], at_ms))
    return seen


def witnessed(log, seen):
    """Whether every watcher saw every closing before the round that decides."""
    return bool(seen) and all(
        times.get(group.closed.hash, U64) < log.chain.time_ms(group.closed.decides) for times in seen.values() for group in log.groups
    )


def because(log, seen):
    """Why the draw is not witnessed: nothing if it is."""
    drawn = [group.drawn for group in log.groups]
    reasons = [
        name
        for name, holds in (
            ("late", any(group.closed and group.closed.late for group in log.groups)),
            ("not_drawn", None in drawn),
            ("secret", "secret" in log.published["draw"] or "secret" in drawn),
            ("given_up", "given_up" in drawn),
            ("rules_1", log.rules == 1),
        )
        if holds
    ]
    return reasons or ([] if witnessed(log, seen) else ["not_seen"])


def say_log(log, report):
    """Prints what was published, and the round that decides each group."""
    report.say(f"sale {log.published['sale']}, rules {log.rules}, {len(log.states)} records")
    for group in log.groups:
        if group.closed is None:
            report.say(f"group {group.name}: not closed")
            continue
        closed = group.closed
        report.say(f"group {group.name}: {closed.count} indices, closed by record {closed.number}, {closed.hash}")
        if closed.decides is None:
            report.say(f"group {group.name}: {'the chain is not known' if log.published['draw'].get('beacon') else 'a secret decides'}")
            continue
        report.say(f"group {group.name}: round {closed.decides} decides, {group.drawn or 'not drawn'}")
        if closed.late:
            named = log.published["draw"]["beacon"]["round"]
            draws = closed.decides // 200 - named // 200
            report.say(f"group {group.name}: closed late: the operator may have looked at {draws} draws")
        if log.chain:
            report.say(f"curl https://api.drand.sh/{log.chain.hash}/public/{closed.decides}")


def verify(folder, chains, seen_files=(), seen_hashes=(), watchers=(), asked=None, say=print):
    """Verifies the files of `folder` and prints what it finds by `say`, a line a call. Gives the exit code.

    `chains` has a `Chain` by its hash. `asked` has `index`, `buyer` and `nonce`. `OSError` and `Unreadable` say that a
    file cannot be read."""
    folder = Path(folder)
    report = Report(say)
    log = Log(folder / "log.jsonl", chains, report)
    if log.published is None or not log.complete:
        report.end()
        report.say("wrong")
        return 1
    say_log(log, report)
    if asked:
        asked.sale = log.published["sale"]
    places = hashes.Places()
    leaves = Leaves(folder / "leaves.jsonl", log, report, asked)
    turns = admissions(folder / "admissions.jsonl", log, leaves, places, report)
    if log.rules == 2:
        orders(folder / "orders.jsonl", log, turns, report)
    seen = watched(seen_files, watchers, log, report)
    draw = log.published["draw"]
    known = {group.closed.root for group in log.groups if group.closed} | {draw.get("commitment"), draw.get("secret")}
    for digest in seen_hashes:
        if digest not in log.hashes and digest not in known:
            report.wrong("unseen", f"{digest} is no hash of a record, no root and no commitment of this log")
    if asked:
        window = leaves.found and leaves.found.window_of(asked.index)
        if leaves.found is None:
            report.wrong("not_included", f"{asked.buyer} with this nonce is not at index {asked.index}")
        elif window is None:
            report.say(f"index {asked.index} of the group {leaves.found.name} is {asked.buyer}, and is not drawn")
        else:
            report.say(f"index {asked.index} of the group {leaves.found.name} is {asked.buyer}, at place {places.place(*window[:3], asked.index)}")
    report.end()
    if report.counts:
        report.say("wrong")
        return 1
    reasons = because(log, seen)
    if not reasons:
        report.say("witnessed")
        return 0
    unmendable = "" if reasons == ["not_seen"] else " (not verifiable against the operator)"
    report.say(f"not witnessed: {', '.join(reasons)}{unmendable}")
    return 3
