"""The arithmetic of a turn, against numbers that were computed by hand from the page."""

import unittest

from verify_draw.turn import NOTHING, first_state, next_state, shares

SETTINGS = {
    "groups": [{"group": "a", "share": 2}, {"group": "b", "share": 1}],
    "opens_at_ms": 1000,
    "max_per_second": 10,
    "provider_per_second": None,
    "max_requests_per_second": 55,
    "max_units": 4,
    "show_up_ms": 120_000,
    "visit_ms": 300_000,
    "window_ms": 60_000,
}
QUIET = {"all": 0, "bad": 0}


def counts(**others):
    return dict({"epoch": 1, "came": 0, "inside": 0, "passed_came": 0, "visits": 0, "held": 0}, **others)


def given(**others):
    return dict({"free": 100, "joined": [100, 100], "counts": counts(), "reservations": QUIET}, **others)


def drawn():
    """A state with 100 indices drawn in each group."""
    state = first_state(SETTINGS)
    for group in state["groups"]:
        group.update(joined=100, seed="00", window_end=100, closed={"closing": {"count": 100, "root": ""}, "at_ms": 0})
    return state


def turn(state, step=1000, events=(), **others):
    return next_state(SETTINGS, state, 10_000, 10_000 + step, list(events), given(**others), {})


class Turns(unittest.TestCase):
    def test_capacity_and_carry(self):
        state = turn(drawn())
        # 8000 + 10000 * 1000 / 100000 = 8100: 8.1 places.
        self.assertEqual(state["limit_milli"], 8100)
        self.assertEqual((state["gave"]["capacity"], state["gave"]["served"], state["carry_milli"]), (8, 8, 100))
        # 55 * 0.8 = 44 requests a second.
        self.assertEqual(state["gave"]["requests_per_second"], 44)
        self.assertEqual(turn(state, 900)["carry_milli"], (100 + 8190 * 900 // 1000) % 1000)

    def test_shares_are_served_by_stride(self):
        groups = turn(drawn())["groups"]
        # Strides of 524288 and 1048576: a, b, a, a, b, a, a, b.
        self.assertEqual([group["serving"] for group in groups], [5, 3])
        self.assertEqual([group["pass"] for group in groups], [5 * 524288, 3 * 1048576])

    def test_a_group_that_is_served_keeps_up_with_the_others(self):
        state = drawn()
        state["groups"][1].update(serving=100)
        groups = turn(state, counts=counts(came=100))["groups"]
        self.assertEqual([group["serving"] for group in groups], [8, 100])
        self.assertEqual([group["pass"] for group in groups], [8 * 524288, 8 * 524288])

    def test_failing_reservations_lower_the_capacity(self):
        state = turn(drawn(), reservations={"all": 20, "bad": 4})
        self.assertEqual((state["limit_milli"], state["steady_ms"], state["tripped"]), (5600, 0, False))
        state = turn(state, reservations={"all": 20, "bad": 4})
        self.assertEqual((state["limit_milli"], state["steady_ms"]), (5600, 1000))
        state = turn(state, reservations={"all": 20, "bad": 11})
        self.assertEqual((state["limit_milli"], state["steady_ms"], state["tripped"]), (1000, 0, True))
        self.assertEqual((state["gave"]["stock"], state["gave"]["capacity"]), (0, 1))

    def test_time_is_bounded_and_stands_while_paused(self):
        state = turn(drawn(), 100_000)
        self.assertEqual((state["clock_ms"], state["gave"]["capacity"]), (60_000, 42))
        self.assertEqual(state["groups"][0]["marks"], [0] * 6)
        paused = turn(state, events=[{"command": "pause"}])
        self.assertEqual((paused["mode"], paused["clock_ms"], paused["gave"]["stock"]), ("paused", 61_000, 0))
        self.assertEqual(turn(paused, events=[{"command": "resume"}])["clock_ms"], 61_000)

    def test_places_run_out_by_marks(self):
        state = drawn()
        for group in state["groups"]:
            group["marks"] = list(range(12))
        state["groups"][0]["serving"] = 50
        state = turn(state, 20_000)
        self.assertEqual(state["groups"][0]["marks"], [*range(2, 12), 50, 50])
        self.assertEqual(state["groups"][0]["passed"], 1)

    def test_shares_without_observations_and_with(self):
        nothing = {"look": NOTHING, "ask": NOTHING, "ask_late": NOTHING}
        # asks = 750000 + 250000 * 0.25; comes = 0.8; holds = 2.
        self.assertEqual(shares(4, NOTHING, NOTHING, nothing), (812_500, 250_000, 800_000, 2_000_000))
        # look = 100 of 200; comes = (70 + 80) of 200 = 0.75, times (0.5 + 0.5 * 0.8125).
        looks = dict(nothing, look={"sum": 100, "count": 100})
        comes, holds = {"sum": 70, "count": 100}, {"sum": 500, "count": 100}
        self.assertEqual(shares(4, comes, holds, looks), (812_500, 250_000, 750_000 * 906_250 // 1_000_000, 3_500_000))

    def test_stock_leaves_a_margin_of_two_deviations(self):
        # One of 10 due takes 1.6 seat-legs on average: mean 1.6 x, variance x * 1.6 * 2.4 = 3.84 x, so that
        # 1.6 x + 2 sqrt(3.84 x) <= 12 holds for 2 (3.2 + 5.5...) and 3 (4.8 + 6.8 = 11.6), and not for 4 (6.4 + 7.8).
        state = drawn()
        state["limit_milli"] = 10_000
        self.assertEqual(turn(state, free=12)["gave"]["stock"], 3)
        self.assertEqual(turn(state, free=12)["gave"]["requests_per_second"], 44)
        self.assertEqual(turn(state, free=8)["gave"]["requests_per_second"], 40)

    def test_one_place_is_served_if_nobody_is_in_flight(self):
        self.assertEqual(turn(drawn(), free=1)["gave"]["stock"], 1)
        self.assertEqual(turn(drawn(), free=0)["gave"]["stock"], 0)
        self.assertEqual(turn(drawn(), free=1, counts=counts(inside=1))["gave"]["stock"], 0)
        state = drawn()
        state["groups"][0].update(serving=5)
        self.assertEqual(turn(state, free=1)["gave"]["stock"], 0)
        for group in state["groups"]:
            group.update(marks=[group["serving"]] * 2)
        self.assertEqual(turn(state, free=1)["gave"]["stock"], 1)

    def test_what_is_unknown_serves_nobody(self):
        state = turn(drawn(), free=None)
        self.assertEqual((state["gave"]["stock"], state["gave"]["requests_per_second"]), (0, 0))
        before = drawn()
        before["gave"]["flight"] = {"waiting": 3, "inside": 2}
        state = turn(before, counts=None)
        self.assertEqual((state["gave"]["stock"], state["gave"]["flight"], state["counters"]), (0, {"waiting": 3, "inside": 2}, None))

    def test_observations_and_flight(self):
        state = drawn()
        state["groups"][0].update(serving=60, passed=20)
        state["counters"] = {"counts": counts(came=10, passed_came=5, visits=2, held=3), "passed": 8, "lost": None}
        looks = {"looking": 3, "lingering": 1, "all": 9, "looked": 4, "asked": 3, "lingered": 2, "asked_late": 1}
        state = turn(state, counts=counts(came=15, inside=7, passed_came=14, visits=6, held=13, looks=looks))
        self.assertEqual(state["comes"], {"sum": 9, "count": 12})
        self.assertEqual(state["holds"], {"sum": 10, "count": 4})
        self.assertEqual(
            state["looks"],
            {"look": {"sum": 9, "count": 14}, "ask": {"sum": 3, "count": 4}, "ask_late": {"sum": 1, "count": 2}},
        )
        self.assertEqual(state["gave"]["flight"], {"waiting": 25, "looking": 3, "lingering": 1, "inside": 7})
        self.assertEqual(state["counters"]["passed"], 20)

    def test_many_observations_are_halved(self):
        state = drawn()
        state["groups"][0].update(serving=100, passed=100)
        state["comes"] = {"sum": 3001, "count": 3999}
        state["counters"] = {"counts": counts(), "passed": 0, "lost": None}
        self.assertEqual(turn(state, counts=counts(passed_came=70))["comes"], {"sum": 1535, "count": 2049})

    def test_lost_counters_fade(self):
        state = drawn()
        state["gave"]["flight"] = {"waiting": 0, "lingering": 10, "inside": 90}
        state["counters"] = {"counts": counts(visits=5), "passed": 0, "lost": None}
        state = turn(state, counts=counts(epoch=2, inside=1))
        self.assertEqual(state["counters"]["lost"], [100, 1000])
        self.assertEqual(state["gave"]["flight"]["inside"], 100)
        state = turn(state, 60_000, counts=counts(epoch=2, inside=1, visits=4, held=4))
        # 240 of 300 seconds are left.
        self.assertEqual(state["gave"]["flight"]["inside"], 80)
        self.assertEqual(state["holds"], NOTHING)
        for _ in range(4):
            state = turn(state, 60_000, counts=counts(epoch=2, inside=1, visits=4, held=4))
        self.assertEqual((state["counters"]["lost"], state["gave"]["flight"]["inside"]), (None, 1))

    def test_later_windows_end_by_age_or_by_serving(self):
        state = turn(drawn(), joined=[103, 100])
        self.assertEqual((state["groups"][0]["window_end"], state["groups"][0]["window_age_ms"]), (100, 1000))
        state["groups"][0]["window_age_ms"] = 59_000
        state = turn(state, joined=[105, 99])
        group = state["groups"][0]
        self.assertEqual((group["window_first"], group["window_end"], group["window_age_ms"]), (100, 105, 0))
        self.assertEqual(state["groups"][1]["joined"], 100)
        state["groups"][1].update(serving=100)
        group = turn(state, joined=[105, 101])["groups"][1]
        self.assertEqual((group["window_first"], group["window_end"], group["window_age_ms"]), (100, 101, 0))

    def test_idle(self):
        state = drawn()
        self.assertEqual(turn(state)["idle_ms"], 0)
        for group in state["groups"]:
            group.update(serving=100, passed=100)
        state["idle_ms"] = 5
        self.assertEqual(turn(state)["idle_ms"], 1005)
        self.assertEqual(turn(dict(state, idle_ms=899_999))["idle_ms"], 900_000)

    def test_a_time_that_goes_back_counts_as_a_second_by_rules_1(self):
        self.assertEqual(turn(drawn(), -5000)["clock_ms"], 1000)


if __name__ == "__main__":
    unittest.main()
