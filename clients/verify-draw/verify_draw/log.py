"""The log: chain of hashes, what may happen, seeds, signatures, and the arithmetic of turns."""

import unicodedata
from bisect import bisect_left
from dataclasses import dataclass, field

from . import hashes
from .beacon import LOCAL_PERIOD, is_signature
from .records import NoRecord, parse
from .turn import first_state, next_state

HOUR_MS = 3_600_000
OLD_WAIT_MS = 120_000  # rules 1: after which the secret may decide
OLD_ROUNDS = 8  # rules 1: from the latest round to the one that decides


@dataclass
class Closed:
    """The closing of a group."""

    number: int
    hash: str
    at_ms: int
    count: int
    root: str
    decides: int | None  # the round, or None if a secret decides
    late: bool = False


@dataclass
class Group:
    name: str
    closed: Closed | None = None
    drawn: str | None = None  # "beacon", "secret" or "given_up"
    drawn_in: int | None = None
    first_seed: bytes | None = None
    # Windows in the order of their indices: one past the last, the first, the seed, and the first record by which they count.
    ends: list = field(default_factory=list)
    windows: list = field(default_factory=list)

    def window_of(self, index):
        """The window that has the index, or None."""
        at = bisect_left(self.ends, index + 1)
        return self.windows[at] if at < len(self.ends) and self.windows[at][0] <= index else None

    def add_window(self, first, end, seed, counts_from):
        if end > first:
            self.ends.append(end)
            self.windows.append((first, end, seed, counts_from))


class Log:
    """What the log says. Broken rules are told to `report`; what is read of the log then stays usable."""

    def __init__(self, path, chains, report):
        self.report = report
        self.chains = chains
        self.rules = None
        self.published = None
        self.chain = None  # the chain that is named, if it is known
        self.groups = []
        self.hashes = {}  # hash of a record -> its number
        self.states = []  # of each record, for each group: serving and passed
        self.free = None
        self.complete = False  # every line is a record
        self._arithmetic = True
        self._read(path)

    # --- records -------------------------------------------------------------------------------------------------

    def _read(self, path):
        before, previous, number = "0" * 64, None, -1
        with open(path, "rb") as lines:
            for number, line in enumerate(lines):
                line = line.removesuffix(b"\n").removesuffix(b"\r")
                try:
                    record, self.rules = parse(line, self.rules)
                    if number == 0 and "published" not in record["entry"] or number and "published" in record["entry"]:
                        raise NoRecord("the first record publishes, and no other")
                    if len(record["state"]["groups"]) != len(
                        (self.published or record["entry"]["published"])["settings"]["groups"]
                    ):
                        raise NoRecord("its state has another number of groups")
                except NoRecord as reason:
                    self.report.wrong("record", f"line {number + 1} is no record: {reason}; what follows is not read")
                    return
                hashed = hashes.sha256(line)
                if record["number"] != number:
                    self.report.wrong("record", f"record {number} has the number {record['number']}")
                if record["before"] != before:
                    self.report.wrong("chain", f"record {number} lacks the hash of the one before")
                before = hashed.hex()
                self.hashes[before] = number
                if previous is None:
                    self._publish(record)
                else:
                    self._turn(number, record, before, previous)
                self.states.append([(group["serving"], group["passed"]) for group in record["state"]["groups"]])
                self._windows(number, record, previous, hashed)
                previous = record
        if number < 0:
            self.report.wrong("record", "the log is empty")
            return
        self.complete = True

    def _publish(self, record):
        self.published = published = record["entry"]["published"]
        settings = published["settings"]
        self.groups = [Group(group["group"]) for group in settings["groups"]]
        for rule, broken in (
            ("two groups have one name", len({group.name for group in self.groups}) < len(self.groups)),
            ("serving begins before the first window closes", settings["closes_at_ms"] > settings["opens_at_ms"]),
            (
                "joining does not begin before it ends",
                settings["joins_open_at_ms"] is not None and settings["joins_open_at_ms"] >= settings["closes_at_ms"],
            ),
            ("show_up_ms is no multiple of 10,000", settings["show_up_ms"] % 10_000),
            ("visit_ms is less than show_up_ms", settings["visit_ms"] < settings["show_up_ms"]),
        ):
            if broken:
                self.report.wrong("record", f"record 0: {rule}")
        beacon = published["draw"].get("beacon")
        if self.rules == 1:
            self.chain = self.chains.get(beacon)
        elif beacon:
            self._name_round(record["at_ms"], beacon, settings)
        self._state(0, first_state(settings), record["state"])

    def _name_round(self, at_ms, beacon, settings):
        chain = self.chains.get(beacon["chain"])
        if chain is None:
            self.report.wrong("beacon", f"record 0 names the chain {beacon['chain']}, which is not known: --chain names it")
            return
        if (beacon["genesis"], beacon["period"]) != (chain.genesis, chain.period):
            self.report.wrong("beacon", "record 0 has another genesis or period than the chain has")
        self.chain = chain
        named, time_ms = beacon["round"], chain.time_ms(beacon["round"])
        lead = settings["opens_at_ms"] - settings["closes_at_ms"]
        if named != chain.named_round(settings["opens_at_ms"], settings["closes_at_ms"]):
            self.report.wrong("record", f"record 0 names the round {named}, which is not the one that its times give")
        if time_ms <= settings["closes_at_ms"]:
            self.report.wrong("record", f"record 0 names the round {named}, which is out before the closing")
        if time_ms <= at_ms:
            self.report.wrong("record", f"record 0 names the round {named}, which was out before the record")
        if chain.period != LOCAL_PERIOD:
            if lead < 240_000:
                self.report.wrong("record", f"record 0 has a lead of {lead} ms, which is less than 240,000")
            if at_ms < time_ms < at_ms + HOUR_MS:
                self.report.wrong("record", f"record 0 names the round {named} less than an hour before it is out")

    def _state(self, number, expected, state):
        if expected == state:
            return
        self._arithmetic = False
        differs = []
        for name in dict(expected, **state):
            if expected.get(name) == state.get(name):
                continue
            if name == "groups":
                for group, ours, theirs in zip(self.groups, expected["groups"], state["groups"]):
                    differs += [
                        f"{field} of the group {group.name} is {theirs[field]!r}, and not {ours[field]!r}"
                        for field in ours
                        if ours[field] != theirs[field]
                    ]
            else:
                differs.append(f"{name} is {state.get(name)!r}, and not {expected.get(name)!r}")
        self.report.wrong("arithmetic", f"record {number}: {'; '.join(differs)[:600]}; later turns are not checked")

    # --- turns ---------------------------------------------------------------------------------------------------

    def _turn(self, number, record, hashed, previous):
        turn, state = record["entry"]["turn"], record["state"]
        self.free = turn["given"]["free"]
        wrongs = []
        if self.rules == 2 and record["at_ms"] < previous["at_ms"]:
            wrongs.append("time goes back")
        possible, seeds = self._events(number, record, hashed, previous["state"], wrongs)
        if len(turn["given"]["joined"]) != len(self.groups):
            wrongs.append("`joined` has not a number for each group")
            possible = False
        for wrong in wrongs:
            self.report.wrong("record", f"record {number}: {wrong}")
        for position, seed in seeds.items():
            group = self.groups[position]
            # Places are judged by the seed that the source gives, whatever the log has.
            group.drawn_in, group.first_seed = number, bytes.fromhex(seed)
            if state["groups"][position]["seed"] != seed:
                self.report.wrong("seed", f"record {number}: the seed of the group {group.name} is not that of its source")
                possible = False
        # What cannot be gives no state to go on from.
        self._arithmetic &= possible
        if self._arithmetic:
            expected = next_state(
                self.published["settings"], previous["state"], previous["at_ms"], record["at_ms"], turn["events"],
                turn["given"], seeds,
            )
            self._state(number, expected, state)

    def _events(self, number, record, hashed, state, wrongs):
        """Whether the state that the events give can be computed, and the seeds, in hexadecimal, by group."""
        at_ms, possible, seeds, mode = record["at_ms"], True, {}, state["mode"]
        numbers = {group.name: position for position, group in enumerate(self.groups)}
        for event in record["entry"]["turn"]["events"]:
            [(kind, said)] = event.items()
            if kind == "command":
                [(name, value)] = said.items() if isinstance(said, dict) else [(said, None)]
                if mode == "closed" and name != "notice":
                    wrongs.append(f"a command {name} after the close")
                mode = {"pause": "paused", "resume": "open", "close": "closed"}.get(name, mode)
                if name == "notice" and value is not None and not _line(value, 200):
                    wrongs.append("a notice has 1 to 200 bytes and no control characters")
                if name == "beacon_given_up":
                    self._give_up(at_ms, value, seeds, wrongs)
                continue
            position = numbers.get(said["group"])
            if position is None:
                wrongs.append(f"there is no group {said['group']!r}")
                possible = False
                continue
            group = self.groups[position]
            if kind == "closed":
                if group.closed:
                    wrongs.append(f"the group {group.name} is closed already")
                    possible = False
                    continue
                self._close(number, hashed, at_ms, group, said["closing"], wrongs)
            elif group.closed is None or group.drawn:
                wrongs.append(f"the group {group.name} is drawn {'already' if group.drawn else 'before it is closed'}")
                possible = False
            else:
                seeds[position] = self._draw(number, at_ms, group, said["source"], wrongs)
        return possible, seeds

    def _close(self, number, hashed, at_ms, group, closing, wrongs):
        settings, draw = self.published["settings"], self.published["draw"]
        decides, late = None, False
        if self.rules == 1:
            latest = closing["latest_round"]
            if latest is None:
                if draw["beacon"] is not None and at_ms < settings["closes_at_ms"] + OLD_WAIT_MS:
                    wrongs.append("a closing without the beacon's latest round")
            elif draw["beacon"] is None:
                wrongs.append("a closing with a beacon's round, and no beacon is named")
            else:
                decides = latest + OLD_ROUNDS
        else:
            if at_ms < settings["closes_at_ms"]:
                wrongs.append(f"the group {group.name} is closed early")
            if self.chain:
                decides = draw["beacon"]["round"]
                late = self.chain.time_ms(decides) <= at_ms
                if late:
                    decides = self.chain.late_round(at_ms)
        group.closed = Closed(number, hashed, at_ms, closing["count"], closing["root"], decides, late)

    def _window(self, group):
        return self.published["sale"], group.name, group.closed.count, bytes.fromhex(group.closed.root)

    def _draw(self, number, at_ms, group, source, wrongs):
        """The seed that the source gives."""
        draw = self.published["draw"]
        if "secret" in source:
            group.drawn = "secret"
            secret = bytes.fromhex(source["secret"])
            commitment = draw["commitment"] if self.rules == 1 else draw.get("secret")
            if commitment is None:
                wrongs.append(f"a secret draws the group {group.name}, and a beacon decides")
            elif hashes.sha256(secret).hex() != commitment:
                wrongs.append("the secret is not that of the commitment")
            elif self.rules == 1 and group.closed.decides is not None and at_ms < group.closed.at_ms + OLD_WAIT_MS:
                wrongs.append(f"a secret draws the group {group.name}, and the beacon was not waited for")
            return hashes.seed_by_secret(secret, *self._window(group)).hex()
        group.drawn = "beacon"
        named, signature = source["beacon"]["round"], bytes.fromhex(source["beacon"]["signature"])
        if draw.get("beacon") is None:
            wrongs.append(f"a beacon draws the group {group.name}, and none is named")
        elif self.rules == 1 and group.closed.decides is None:
            wrongs.append(f"a beacon draws the group {group.name}, and the secret decides")
        elif group.closed.decides is not None and named != group.closed.decides:
            wrongs.append(f"round {named} draws the group {group.name}, and round {group.closed.decides} decides")
        elif self.rules == 2 and self.chain and at_ms < self.chain.time_ms(named):
            wrongs.append(f"the group {group.name} is drawn before round {named} is out")
        if self.chain:
            if not is_signature(self.chain.key, named, signature):
                self.report.wrong("beacon", f"record {number}: the signature is not that of round {named}")
        elif self.rules == 1 and draw["beacon"]:
            self.report.wrong("beacon", f"record {number}: the chain {draw['beacon']} is not known: --chain names it")
        return hashes.seed_by_beacon(signature, *self._window(group)).hex()

    def _give_up(self, at_ms, said, seeds, wrongs):
        groups = [(position, group) for position, group in enumerate(self.groups) if group.closed and not group.drawn]
        if self.rules == 1 or "beacon" not in self.published["draw"]:
            wrongs.append("a beacon is given up that cannot be")
        if not groups:
            wrongs.append("a beacon is given up, and no group waits for it")
        if not _line(said["by"], 64):
            wrongs.append("who gives up a beacon has 1 to 64 bytes and no control characters")
        for position, group in groups:
            if self.chain and group.closed.decides is not None:
                if at_ms < self.chain.time_ms(group.closed.decides) + HOUR_MS:
                    wrongs.append("a beacon is given up less than an hour after its round")
            group.drawn = "given_up"
            seeds[position] = hashes.seed_given_up(bytes.fromhex(said["randomness"]), *self._window(group)).hex()

    def _windows(self, number, record, previous, hashed):
        for position, group in enumerate(self.groups):
            now = record["state"]["groups"][position]
            end_before = previous["state"]["groups"][position]["window_end"] if previous else 0
            if group.drawn_in == number and group.first_seed is not None:
                group.add_window(0, group.closed.count, group.first_seed, number)
                end_before = group.closed.count
            if now["window_end"] > end_before and group.first_seed is not None:
                seed = hashes.seed_of_later_window(hashed, group.name)
                group.add_window(now["window_first"], now["window_end"], seed, number + 1)


def _line(text, most):
    """Whether the text has 1 to `most` bytes and no control characters."""
    return 1 <= len(text.encode()) <= most and not any(unicodedata.category(c) == "Cc" for c in text)
