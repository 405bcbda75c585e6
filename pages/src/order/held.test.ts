import assert from "node:assert/strict";
import { test } from "node:test";

import { heldOrders } from "./held.ts";

const order = (number: string, state: "pending" | "paid" | "expired", payBy: string) => ({
  order: number, sale: `sale-${number}`, state, pay_by: payBy,
  lines: [{ tier: "a", price_minor: 1, tickets: [{ seat: "1" }, { seat: "2" }] }, { tier: "b", price_minor: 1, tickets: [{ seat: "3" }] }],
});
const NOW = Date.parse("2026-05-01T10:00:00Z");

test("what is pending and may be paid still is held, the first to end first", () => {
  const orders = [
    order("1", "pending", "2026-05-01T10:09:00Z"), order("2", "paid", "2026-05-01T10:09:00Z"), order("3", "pending", "2026-05-01T10:03:00Z"),
    order("4", "expired", "2026-05-01T10:09:00Z"), order("5", "pending", "2026-05-01T10:00:00Z"), order("6", "pending", "never"),
  ];
  assert.deepEqual(heldOrders(orders, NOW), [
    { order: "3", sale: "sale-3", payByMs: NOW + 180_000, tickets: 3 }, { order: "1", sale: "sale-1", payByMs: NOW + 540_000, tickets: 3 },
  ]);
  assert.deepEqual(heldOrders(orders, NOW, "3").map((one) => one.order), ["1"], "the page of an order does not announce it");
});
