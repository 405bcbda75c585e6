import assert from "node:assert/strict";
import { test } from "node:test";

import { leftOf } from "../order/give-back.ts";
import { defectOf, hashOf, queryOf, searchFrom } from "./find.ts";
import { checked, minorOf, typedOf, type Draft } from "./refund.ts";
import { reissuable } from "./reissue.ts";

test("a search stands behind the # of the address and comes back from there", () => {
  const search = { way: "seat", values: { sale: "hall", tier: "stalls", seat: "A&B #1" } } as const;
  assert.deepEqual(searchFrom(hashOf(search)), search);
  assert.deepEqual(queryOf({ way: "buyer", values: { buyer: " ann ", sale: "x" } }), { buyer: "ann" });
  for (const bad of ["", "#by=buyer", "#by=nobody&x=1", "#by=seat&sale=a&tier=b", "#by=constructor"]) assert.equal(searchFrom(bad), null, bad);
});

test("a search is checked before it is sent", () => {
  assert.equal(defectOf({ way: "order", values: {} }), "missing");
  assert.equal(defectOf({ way: "order", values: { order: "12a" } }), "bad-order");
  assert.equal(defectOf({ way: "order", values: { order: "169218430493097984" } }), null);
});

test("amounts are read by the digits of their currency", () => {
  for (const [text, currency, minor] of [["12", "EUR", 1_200], ["12.5", "EUR", 1_250], [" 12,50 ", "EUR", 1_250], ["0.07", "EUR", 7], ["1500", "JPY", 1_500], ["1.234", "KWD", 1_234], ["1299", "HUF", 129_900], ["12.5", "HUF", 1_250],
    ["12.345", "EUR", null], ["1.5", "JPY", null], ["-1", "EUR", null], ["", "EUR", null], ["1e3", "EUR", null], ["1.000,50", "EUR", null]] as const) {
    assert.equal(minorOf(text, currency), minor, `${text} ${currency}`);
  }
  assert.equal(typedOf(5, "EUR"), "0.05");
  assert.equal(typedOf(1_500, "JPY"), "1500");
});

const TICKET = { tier: "a", seat: "A-1", attendee: null, priceMinor: 5_000, feeMinor: null };
const draft = (change: Partial<Draft>): Draft => ({ what: "tickets", tickets: [TICKET], amount: null, reason: "", ...change });

test("a refund is what the API takes", () => {
  assert.deepEqual(checked(draft({ reason: " late\n train " }), 2, "EUR", 9_000), { amountMinor: 5_000, body: { number: 2, tickets: [{ tier: "a", seat: "A-1" }], reason: "late train" } });
  assert.deepEqual(checked(draft({ amount: "10" }), 2, "EUR", 9_000), { amountMinor: 1_000, body: { number: 2, tickets: [{ tier: "a", seat: "A-1" }], amount_minor: 1_000, currency: "EUR" } });
  assert.deepEqual(checked(draft({ what: "all" }), 1, "EUR", 9_000), { amountMinor: 9_000, body: { number: 1, tickets: "all" } });
  assert.deepEqual(checked(draft({ what: "amount", amount: "0.5" }), 1, "EUR", 9_000), { amountMinor: 50, body: { number: 1, tickets: [], amount_minor: 50, currency: "EUR" } });
});

test("a refund that the API would refuse is not sent", () => {
  assert.equal(checked(draft({ tickets: [] }), 1, "EUR", 9_000), "refund-no-ticket");
  assert.equal(checked(draft({ what: "amount", amount: "0" }), 1, "EUR", 9_000), "refund-no-amount");
  assert.equal(checked(draft({ what: "amount", amount: "x" }), 1, "EUR", 9_000), "refund-no-amount");
  assert.equal(checked(draft({}), 1, "EUR", 4_999), "refund-too-much");
  assert.equal(checked(draft({ reason: "x".repeat(201) }), 1, "EUR", 9_000), "refund-long-reason");
});

test("an operator is offered no more than is left, and what pays another order has gone", () => {
  const payments = [{ outcome: "refund", amount_minor: 21_000 }, { outcome: "accepted", amount_minor: 9_000 }] as never;
  const refunds = [{ amount_minor: 1_000 }, { amount_minor: 500, kept_minor: 3_000 }];
  const leftMinor = leftOf({ amount_minor: 9_000, payments }, refunds);
  assert.equal(leftMinor, 4_500);
  assert.deepEqual(checked(draft({ what: "all" }), 3, "EUR", leftMinor), { amountMinor: 4_500, body: { number: 3, tickets: "all" } });
  assert.equal(checked(draft({ what: "amount", amount: "45.01" }), 3, "EUR", leftMinor), "refund-too-much");
});

test("tickets keep their numbers in the order, whatever was given back before them", () => {
  const order = { state: "paid", lines: [{ tier: "a", tickets: [{ seat: "A-1", refund: 1 }, { seat: "A-2", attendee: "Ann" }] }, { tier: "b", tickets: [{ seat: "B-1" }] }] } as never;
  assert.deepEqual(reissuable(order), [{ number: 2, tier: "a", seat: "A-2", attendee: "Ann" }, { number: 3, tier: "b", seat: "B-1", attendee: null }]);
  assert.deepEqual(reissuable({ ...(order as object), state: "refund_due" } as never), []);
});
