"""The form of a record of the log: section "The files" of docs/draw.md.

A *form* takes a value that the JSON parser gave and raises `NoRecord` unless the value has it. Fields are in the order
of the page. A value that has its form is written again, and must give the same bytes.
"""

import json
import re

U32 = 2**32 - 1
U64 = 2**64 - 1


class NoRecord(ValueError):
    """What is no record, and why."""


def whole(least=0, most=U64):
    def form(value):
        if type(value) is not int or not least <= value <= most:
            raise NoRecord(f"{json.dumps(value)[:80]} is no whole number from {least} to {most}")

    return form


def words(value):
    if type(value) is not str:
        raise NoRecord(f"{json.dumps(value)[:80]} is no text")


def short_text(value):
    words(value)
    if not value or len(value.encode()) > 65535:
        raise NoRecord("a name is empty or too long")


def flag(value):
    if type(value) is not bool:
        raise NoRecord(f"{json.dumps(value)[:80]} is neither true nor false")


def hexadecimal(size):
    pattern = re.compile(f"[0-9a-f]{{{2 * size}}}")

    def form(value):
        if type(value) is not str or not pattern.fullmatch(value):
            raise NoRecord(f"{json.dumps(value)[:80]} is not {size} bytes in lower-case hexadecimal")

    return form


def exactly(expected):
    def form(value):
        if type(value) is not type(expected) or value != expected:
            raise NoRecord(f"{json.dumps(value)[:80]} is not {json.dumps(expected)}")

    return form


def nullable(inner):
    def form(value):
        if value is not None:
            inner(value)

    return form


def either(*forms):
    def form(value):
        reasons = []
        for inner in forms:
            try:
                return inner(value)
            except NoRecord as reason:
                reasons.append(str(reason))
        raise NoRecord(" and ".join(reasons))

    return form


def items(inner, least=0, most=None):
    def form(value):
        if type(value) is not list or len(value) < least or most is not None and len(value) > most:
            raise NoRecord(f"{json.dumps(value)[:80]} is no list of the right length")
        for item in value:
            inner(item)

    return form


def pair(first, second):
    def form(value):
        if type(value) is not list or len(value) != 2:
            raise NoRecord(f"{json.dumps(value)[:80]} is no pair")
        first(value[0])
        second(value[1])

    return form


class Left:
    """The form of a field that is left out exactly if its value is empty: `false`, 0, or an object of such values."""

    def __init__(self, inner):
        self.inner = inner

    def __call__(self, value):
        self.inner(value)
        if is_zero(value):
            raise NoRecord(f"{json.dumps(value)[:80]} is left out in a record")


def is_zero(value):
    return all(map(is_zero, value.values())) if isinstance(value, dict) else not value


def fields(**forms):
    names = list(forms)
    required = [name for name in names if not isinstance(forms[name], Left)]

    def form(value):
        if type(value) is not dict:
            raise NoRecord(f"{json.dumps(value)[:80]} is no object")
        if [name for name in names if name in value] != list(value):
            raise NoRecord(f"the fields {list(value)} are not those of {names}, in this order")
        for name in required:
            if name not in value:
                raise NoRecord(f"{name} is missing")
        for name, inner in value.items():
            try:
                forms[name](inner)
            except NoRecord as reason:
                raise NoRecord(f"{name}: {reason}") from None

    return form


def one_of(**forms):
    def form(value):
        if type(value) is not dict or len(value) != 1 or next(iter(value)) not in forms:
            raise NoRecord(f"{json.dumps(value)[:80]} is none of {list(forms)}")
        [(name, inner)] = value.items()
        try:
            forms[name](inner)
        except NoRecord as reason:
            raise NoRecord(f"{name}: {reason}") from None

    return form


HASH = hexadecimal(32)
RATE = whole(1, 1_000_000)
TIME = whole(-(2**63), 2**63 - 1)  # a simulated sale begins at 0, and joining before it

SETTINGS = fields(
    groups=items(fields(group=short_text, share=whole(1, 1000), codes=Left(flag)), 1, 4),
    joins_open_at_ms=nullable(TIME),
    closes_at_ms=TIME,
    opens_at_ms=TIME,
    registered_only=flag,
    max_per_second=RATE,
    provider_per_second=nullable(RATE),
    max_requests_per_second=RATE,
    max_units=whole(1, 65535),
    max_attempts=whole(1, 1000),
    show_up_ms=whole(120_000, 3_600_000),
    visit_ms=whole(0, 86_400_000),
    window_ms=whole(1000, 3_600_000),
)

PUBLISHED = {
    2: fields(
        rules=exactly(2),
        sale=short_text,
        draw=one_of(
            beacon=fields(chain=HASH, genesis=whole(), period=whole(1, U32), round=whole(1)),
            secret=HASH,
        ),
        stock=whole(),
        settings=SETTINGS,
    ),
    1: fields(sale=short_text, draw=fields(commitment=HASH, beacon=nullable(HASH)), settings=SETTINGS),
}

CLOSING = {
    2: fields(count=whole(0, U32), root=HASH),
    1: fields(count=whole(0, U32), root=HASH, latest_round=nullable(whole())),
}


def _events(rules):
    return items(
        one_of(
            closed=fields(group=words, closing=CLOSING[rules]),
            drawn=fields(
                group=words,
                source=one_of(beacon=fields(round=whole(1), signature=hexadecimal(48)), secret=HASH),
            ),
            command=either(
                exactly("pause"),
                exactly("resume"),
                exactly("close"),
                one_of(
                    rate=nullable(whole(0, U32)),
                    notice=nullable(words),
                    sold_out=flag,
                    beacon_given_up=fields(by=words, randomness=HASH),
                ),
            ),
        )
    )


COUNTS = fields(
    epoch=either(whole(), words),
    came=whole(),
    inside=whole(),
    passed_came=whole(),
    visits=whole(),
    held=whole(),
    looks=Left(
        fields(
            looking=whole(), lingering=whole(), all=whole(), looked=whole(), asked=whole(), lingered=whole(),
            asked_late=whole(),
        )
    ),
)


def _turn(rules):
    return fields(
        events=_events(rules),
        given=fields(
            free=nullable(whole()),
            joined=items(whole(0, U32)),
            counts=nullable(COUNTS),
            reservations=fields(all=whole(), bad=whole()),
        ),
    )


OBSERVED = fields(sum=whole(), count=whole())


def _state(rules):
    return fields(
        mode=either(exactly("open"), exactly("paused"), exactly("closed")),
        clock_ms=whole(),
        idle_ms=whole(),
        rate=nullable(whole(0, U32)),
        notice=nullable(words),
        sold_out=flag,
        tripped=flag,
        limit_milli=whole(),
        steady_ms=whole(),
        carry_milli=whole(),
        comes=OBSERVED,
        holds=OBSERVED,
        looks=Left(fields(look=OBSERVED, ask=OBSERVED, ask_late=OBSERVED)),
        counters=nullable(fields(counts=COUNTS, passed=whole(), lost=nullable(pair(whole(), whole())))),
        groups=items(
            fields(
                serving=whole(),
                passed=whole(),
                joined=whole(),
                closed=nullable(fields(closing=CLOSING[rules], at_ms=TIME)),
                seed=nullable(HASH),
                window_first=whole(),
                window_end=whole(),
                window_age_ms=whole(),
                marks=items(whole()),
                **{"pass": whole()},
            )
        ),
        gave=fields(
            flight=fields(waiting=whole(), looking=Left(whole()), lingering=Left(whole()), inside=whole()),
            capacity=whole(),
            stock=whole(),
            served=whole(),
            requests_per_second=whole(),
        ),
    )


def _record(rules):
    return fields(
        number=whole(),
        at_ms=TIME,
        before=HASH,
        entry=one_of(published=PUBLISHED[rules], turn=_turn(rules)),
        state=_state(rules),
    )


RECORD = {rules: _record(rules) for rules in (1, 2)}


def written(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def rules_of(record):
    """1 or 2, by what record 0 publishes."""
    published = record.get("entry", {}).get("published", {}) if isinstance(record, dict) else {}
    return 1 if isinstance(published, dict) and "rules" not in published and "stock" not in published else 2


def parse(line, rules):
    """The record of a line, in bytes and without its end, and the rules: those given, or, for None, what it says."""
    try:
        record = json.loads(line)
        if rules is None:
            rules = rules_of(record)
        RECORD[rules](record)
        same = written(record) == line
    except (NoRecord, ValueError, RecursionError, AttributeError) as reason:
        raise NoRecord(str(reason)) from None
    if not same:
        raise NoRecord("it is not canonical JSON")
    return record, rules
