import assert from "node:assert/strict";
import { test } from "node:test";

import { isAmount, rowsOf, sumOf, type Taking } from "./takings.ts";

const NOTHING = { orders: 0, tickets: 0, returned: 0, taken_minor: 0, commission_minor: 0, given_back_minor: 0, unowned_minor: 0 };
const point = (minute: number, of: Partial<Taking>): Taking => ({ at: `2026-06-01T10:0${minute}:00.000Z`, ...NOTHING, ...of });

test("rows are summed, and what seldom occurs is shown if it did", () => {
  const points = [point(0, { orders: 2, taken_minor: 5000 }), point(1, { orders: 1, taken_minor: 2500, returned: 1 })];
  assert.equal(sumOf(points, "taken_minor"), 7500);
  assert.equal(sumOf([], "orders"), 0);
  assert.deepEqual(rowsOf(points), ["orders", "tickets", "taken_minor", "returned", "given_back_minor"]);
  const given = [point(0, { commission_minor: 250 }), point(1, { commission_minor: -250, unowned_minor: 1 })];
  assert.deepEqual(rowsOf(given).slice(-2), ["commission_minor", "unowned_minor"]);
});

test("amounts are told from counts", () => {
  assert.deepEqual(rowsOf([]).filter(isAmount), ["taken_minor", "given_back_minor"]);
});
