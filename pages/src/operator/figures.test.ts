import assert from "node:assert/strict";
import { test } from "node:test";

import { barsOf, countsOf, lastMinute, pollMs, share, total, type Figures, type Point } from "./figures.ts";
import { reasonText } from "./figures-words.ts";

const NOTHING = { admitted: 0, waiting: 0, held: 0, paid: 0, expired: 0, cancelled: 0, joined: 0, served: 0, came: 0 };
const point = (minute: number, of: Partial<Point>): Point => ({ at: `2026-06-01T10:0${minute}:00.000Z`, ...NOTHING, ...of });
const FIGURES: Figures = {
  sale: "hall", as_of: "2026-06-01T10:03:00.000Z", period_seconds: 60, delay_seconds: 60,
  points: [point(0, { paid: 4 }), point(1, {}), point(2, { paid: 8, held: 1 })],
  refused: [], server_errors: [], latency: [],
};

test("a waiting room is shown if there was one", () => {
  assert.deepEqual(countsOf(FIGURES.points), ["admitted", "waiting", "held", "paid", "expired", "cancelled"]);
  assert.deepEqual(countsOf([point(0, {}), point(1, { came: 1 })]).slice(0, 4), ["joined", "served", "came", "admitted"]);
});

test("counts together, and of the last minute that is over", () => {
  assert.equal(total(FIGURES.points, "paid"), 12);
  assert.equal(total([], "paid"), 0);
  assert.equal(lastMinute(FIGURES, "paid"), 8);
  assert.equal(lastMinute({ ...FIGURES, delay_seconds: 0 }, "paid"), 0, "a live minute is not over");
  assert.equal(lastMinute({ ...FIGURES, delay_seconds: 0, points: [point(0, { paid: 1 })] }, "paid"), null);
});

test("a bar for each minute that has some, the highest as high as the picture", () => {
  const bars = barsOf(FIGURES.points.map(({ paid }) => paid));
  assert.deepEqual(bars.map(({ y, height }) => [y, height]), [[12, 12], [0, 24]]);
  assert.ok(bars.every(({ x, width }) => x >= 0 && x + width <= 100));
  assert.deepEqual(barsOf([0, -1, 0]), []);
  assert.deepEqual(barsOf([]), []);
  const [small] = barsOf([1, 10_000]);
  assert.equal(small?.height, 1, "what is little is seen");
  assert.equal(share(5, 10), 50);
  assert.equal(share(0, 0), 0);
});

test("figures that are counted by the minute are asked for by the minute", () => {
  assert.equal(pollMs(FIGURES), 60_000);
  assert.equal(pollMs({ ...FIGURES, delay_seconds: 0 }), 5_000);
  assert.equal(pollMs(null), 5_000);
});

test("a type of problem in words; one that the page does not know has its title", () => {
  assert.equal(reasonText("sold-out", "title"), "Nothing is left that fits");
  assert.equal(reasonText("brand-new", "Something new"), "Something new");
  assert.equal(reasonText("toString", "Something odd"), "Something odd");
});
