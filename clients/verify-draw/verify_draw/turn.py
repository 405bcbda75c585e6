"""The arithmetic of a turn: section "A turn" of docs/draw.md, with its numbers."""

from math import isqrt

M = 1_000_000
U32 = 2**32 - 1
TICK_MS = 10_000
NO_LOOKS = {"looking": 0, "lingering": 0, "all": 0, "looked": 0, "asked": 0, "lingered": 0, "asked_late": 0}
NO_COUNTS = {"came": 0, "inside": 0, "passed_came": 0, "visits": 0, "held": 0}
NOTHING = {"sum": 0, "count": 0}


def first_state(settings):
    """The state of record 0."""
    return {
        "mode": "open",
        "clock_ms": 0,
        "idle_ms": 3 * settings["visit_ms"],
        "rate": None,
        "notice": None,
        "sold_out": False,
        "tripped": False,
        "limit_milli": 800 * settings["max_per_second"],
        "steady_ms": 5000,
        "carry_milli": 0,
        "comes": dict(NOTHING),
        "holds": dict(NOTHING),
        "counters": None,
        "groups": [
            {
                "serving": 0, "passed": 0, "joined": 0, "closed": None, "seed": None, "window_first": 0, "window_end": 0,
                "window_age_ms": 0, "marks": [], "pass": 0,
            }
            for _ in settings["groups"]
        ],
        "gave": {"flight": {"waiting": 0, "inside": 0}, "capacity": 0, "stock": 0, "served": 0, "requests_per_second": 0},
    }


def next_state(settings, s, at_before, at_ms, events, given, seeds):
    """The state after a turn. `seeds` has the seed, in hexadecimal, of each group that the turn draws. Groups are given
    by their position. `s` is not changed."""
    numbers = {group["group"]: position for position, group in enumerate(settings["groups"])}
    groups = [dict(group, marks=list(group["marks"])) for group in s["groups"]]
    new = dict(s, groups=groups)

    # 2. Time.
    d = at_ms - at_before
    if d < 0:
        d = 1000  # rules 1
    paused = s["mode"] == "paused"
    step = 0 if paused else min(d, 5000)
    visit = 0 if paused else min(d, 60_000)

    # 3. Events.
    for event in events:
        [(kind, said)] = event.items()
        if kind == "closed":
            groups[numbers[said["group"]]]["closed"] = {"closing": said["closing"], "at_ms": at_ms}
        elif kind == "drawn":
            position = numbers[said["group"]]
            _draw(groups[position], seeds[position])
        elif isinstance(said, str):
            new["mode"] = {"pause": "paused", "resume": "open", "close": "closed"}[said]
        elif "beacon_given_up" in said:
            for position, group in enumerate(groups):
                if group["closed"] and group["seed"] is None:
                    _draw(group, seeds.get(position))
        else:
            new.update(said)

    # 4. Joined.
    for group, joined in zip(groups, given["joined"]):
        closed = group["closed"]["closing"]["count"] if group["closed"] else 0
        group["joined"] = max(group["joined"], joined, closed)

    # 5. Clock of visits.
    new["clock_ms"] = clock = s["clock_ms"] + visit
    marks = clock // TICK_MS - s["clock_ms"] // TICK_MS
    for group in groups:
        group["marks"] += [group["serving"]] * marks
        while len(group["marks"]) > settings["show_up_ms"] // TICK_MS:
            group["passed"] = group["marks"].pop(0)

    # 6. Counters.
    flight = _counters(settings, s, new, given["counts"])

    # 7. Capacity.
    _capacity(settings, s, new, step, given["reservations"])

    # 8. and 9. Stock.
    free = given["free"]
    rate = new["limit_milli"]
    if new["rate"] is not None:
        rate = min(rate, 1000 * new["rate"])
    if settings["provider_per_second"] is not None:
        rate = min(rate, 1000 * settings["provider_per_second"])
    budget = s["carry_milli"] + rate * step // 1000
    capacity = budget // 1000
    stock = 0
    if (
        free is not None and flight is not None and new["mode"] == "open" and not new["sold_out"] and not new["tripped"]
        and at_ms >= settings["opens_at_ms"]
    ):
        stock = _stock(settings, new, flight, free, capacity)
        if free > 0 and (not any(flight.values()) or not flight["inside"] and all(map(_still, groups))):
            stock = max(stock, min(1, capacity))

    # 10. Serving.
    served = _serve(settings, groups, stock)

    # 11. What it gave.
    requests = 0
    if free is not None:
        requests = 8 * settings["max_requests_per_second"] // 10
        if free < 1000:
            requests = min(requests, 5 * free)
    new["carry_milli"] = min(budget - 1000 * served, 999)
    new["gave"] = {
        "flight": s["gave"]["flight"] if flight is None else _flight(flight),
        "capacity": capacity,
        "stock": stock,
        "served": served,
        "requests_per_second": requests,
    }

    # 12. Later windows.
    for group in groups:
        if group["seed"] is not None:
            group["window_age_ms"] = min(group["window_age_ms"] + visit, settings["window_ms"])
            over = group["window_age_ms"] == settings["window_ms"] or group["serving"] == group["window_end"]
            if over and group["joined"] > group["window_end"]:
                group.update(window_first=group["window_end"], window_end=group["joined"], window_age_ms=0)

    # 13. Idle.
    waited = any(group["passed"] < group["joined"] for group in groups)
    new["idle_ms"] = 0 if waited else min(s["idle_ms"] + visit, 3 * settings["visit_ms"])
    return new


def _draw(group, seed):
    group.update(seed=seed, window_end=group["closed"]["closing"]["count"], window_age_ms=0)


def _less(a, b):
    return max(0, a - b)


def _observe(observed, x, n):
    total, count = observed["sum"] + x, observed["count"] + n
    while count > 4000:
        total //= 2
        count //= 2
    return {"sum": total, "count": count}


def _looks(state):
    return state.get("looks", {"look": NOTHING, "ask": NOTHING, "ask_late": NOTHING})


def _counters(settings, s, new, c):
    """Observes what the counters `c` say, and gives who is in flight: None if they are unknown."""
    if c is None:
        return None
    due = sum(group["serving"] - group["passed"] for group in s["groups"])
    out = sum(group["passed"] for group in s["groups"])
    known = s["counters"] if s["counters"] and s["counters"]["counts"]["epoch"] == c["epoch"] else None
    lost = None
    if known:
        lost = known["lost"]
    elif s["counters"]:
        lost = [s["gave"]["flight"]["inside"] + s["gave"]["flight"].get("lingering", 0), new["clock_ms"]]
    fading = None
    if lost:
        left = settings["visit_ms"] - (new["clock_ms"] - lost[1])
        if left > 0:
            fading = lost[0] * left // settings["visit_ms"]
    b, passed = (known["counts"], known["passed"]) if known else (NO_COUNTS, 0)
    cl, bl = c.get("looks", NO_LOOKS), b.get("looks", NO_LOOKS)
    if fading is None:
        new["comes"] = _observe(s["comes"], _less(c["passed_came"], b["passed_came"]), _less(out, passed))
        new["holds"] = _observe(s["holds"], _less(c["held"], b["held"]), _less(c["visits"], b["visits"]))
        looks = dict(_looks(s))
        if cl["all"] > 0:
            came = _less(c["came"] + c["passed_came"], b["came"] + b["passed_came"])
            looks["look"] = _observe(looks["look"], _less(cl["all"], bl["all"]), came)
        looks["ask"] = _observe(looks["ask"], _less(cl["asked"], bl["asked"]), _less(cl["looked"], bl["looked"]))
        looks["ask_late"] = _observe(
            looks["ask_late"], _less(cl["asked_late"], bl["asked_late"]), _less(cl["lingered"], bl["lingered"])
        )
        new.pop("looks", None)
        if any(total or count for total, count in (look.values() for look in looks.values())):
            new["looks"] = looks
    new["counters"] = {"counts": c, "passed": out, "lost": lost if fading is not None else None}
    return {
        "waiting": _less(due, c["came"]),
        "looking": cl["looking"],
        "lingering": cl["lingering"],
        "inside": max(c["inside"], fading or 0),
    }


def _flight(flight):
    return {name: n for name, n in flight.items() if n or name in ("waiting", "inside")}


def _capacity(settings, s, new, step, reservations):
    most = 1000 * settings["max_per_second"]
    limit = s["limit_milli"]
    every, bad = reservations["all"], reservations["bad"]
    new["steady_ms"] = min(s["steady_ms"] + step, 5000)
    new["tripped"] = every >= 10 and 2 * bad > every
    if new["tripped"]:
        limit, new["steady_ms"] = max(most // 100, 1000), 0
    elif 10 * bad <= every:
        limit = min(limit + most * step // 100_000, most)
    elif new["steady_ms"] == 5000:
        limit, new["steady_ms"] = max(7 * limit // 10, 1000), 0
    new["limit_milli"] = limit


def _mean(observed, p, low, high):
    return min(max((observed["sum"] * M + 100 * p) // (observed["count"] + 100), low), high)


def shares(max_units, comes, holds, looks):
    """`asks`, `late`, `comes` and `holds`, in millionths."""
    h = M * max_units
    look = _mean(looks["look"], 0, 0, M)
    ask = _mean(looks["ask"], 750_000, 50_000, M)
    late = _mean(looks["ask_late"], 250_000, 10_000, M)
    asks = ask + (M - ask) * late // M
    return (
        asks,
        late,
        _mean(comes, 800_000, 50_000, M) * (M - look + look * asks // M) // M,
        _mean(holds, h // 2, 100_000, h),
    )


def _stock(settings, new, flight, free, capacity):
    """The largest number of places up to `capacity` for which the free seat-legs are enough."""
    h = M * settings["max_units"]
    asks, late, comes, holds = shares(settings["max_units"], new["comes"], new["holds"], _looks(new))
    weights = comes * holds // M, asks * holds // M, late * holds // M, holds

    def enough(x):
        classes = flight["waiting"] + x, flight["looking"], flight["lingering"], flight["inside"]
        mean = variance = 0
        for people, weight in zip(classes, weights):
            people = min(people, U32)
            mean += people * weight
            variance += people * (weight * h - weight * weight)
        return mean + 20 * isqrt(variance) // 10 <= free * M

    if not enough(0):
        return 0
    low, high = 0, capacity  # enough(low) holds, and what is more than high is too much
    while low < high:
        middle = (low + high + 1) // 2
        if enough(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _still(group):
    """Whether nobody became due in the group since the last mark but one."""
    return len(group["marks"]) >= 2 and group["marks"][-2] == group["serving"]


def _serve(settings, groups, stock):
    strides = [1_048_576 // group["share"] for group in settings["groups"]]
    served = 0
    while served < stock:
        waiting = [position for position, group in enumerate(groups) if group["serving"] < group["window_end"]]
        if not waiting:
            break
        if len(waiting) == 1:
            [only] = waiting
            count = min(stock - served, groups[only]["window_end"] - groups[only]["serving"])
            groups[only]["serving"] += count
            groups[only]["pass"] += strides[only] * count
            served += count
            continue
        least = min(waiting, key=lambda position: groups[position]["pass"])
        groups[least]["serving"] += 1
        groups[least]["pass"] += strides[least]
        served += 1
    floor = min((group["pass"] for group in groups if group["serving"] < group["window_end"]), default=0)
    for group in groups:
        if group["serving"] == group["window_end"]:
            group["pass"] = max(group["pass"], floor)
    return served
