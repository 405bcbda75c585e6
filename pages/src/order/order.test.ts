import assert from "node:assert/strict";
import { test } from "node:test";

import { OnsaleProblem } from "../shared/api.ts";
import { exchangeSums, movedFrom, pricesOf, readExchange } from "./exchange.ts";
import { keyOf, lastChance, leftOf, liveTickets, merged, totalsOf } from "./give-back.ts";
import { repeated } from "./repeat.ts";
import { stateWord, type Order, type OrderRefund } from "./words.ts";

const NOW = Date.parse("2026-06-01T10:00:00Z");
const ORDER: Order = {
  order: "42", sale: "hall", state: "paid", currency: "EUR", amount_minor: 21_000, created_at: "2026-05-01T10:00:00Z", pay_by: "2026-05-01T10:10:00Z",
  changed_at: "2026-05-01T10:01:00Z",
  lines: [
    { tier: "front", price_minor: 8_000, refundable: { until: "2026-06-01T10:00:01Z", fee_minor: 850 }, tickets: [{ seat: "A-1", attendee: "Ann" }, { seat: "A-2", refund: 1 }] },
    { tier: "back", price_minor: 5_000, tickets: [{ seat: "Z-1" }] },
  ],
};

test("what may be given back, for what, and until when", () => {
  assert.deepEqual(liveTickets(ORDER, NOW), [
    { tier: "front", seat: "A-1", attendee: "Ann", priceMinor: 8_000, feeMinor: 850 },
    { tier: "back", seat: "Z-1", attendee: null, priceMinor: 5_000, feeMinor: null },
  ]);
  assert.deepEqual(totalsOf(liveTickets(ORDER, NOW).slice(0, 1)), { priceMinor: 8_000, feeMinor: 850, backMinor: 7_150 });
  assert.ok(liveTickets(ORDER, NOW + 1_000).every(({ feeMinor }) => feeMinor === null), "the time is exclusive");
  assert.deepEqual(liveTickets({ ...ORDER, state: "refund_due" }, NOW), []);
  assert.equal(lastChance(ORDER), "2026-06-01T10:00:01Z");
  assert.notEqual(keyOf({ tier: "a", seat: "b-c" }), keyOf({ tier: "a-b", seat: "c" }));
});

test("what may be exchanged has terms of its own", () => {
  const [front, back] = ORDER.lines;
  assert.ok(front !== undefined && back !== undefined);
  const order: Order = { ...ORDER, lines: [front, { ...back, exchangeable: { until: "2026-07-01T00:00:00Z", fee_minor: 100 } }] };
  assert.deepEqual(liveTickets(order, NOW, "exchangeable").map(({ feeMinor }) => feeMinor), [null, 100]);
  assert.equal(lastChance(order, "exchangeable"), "2026-07-01T00:00:00Z");
  assert.equal(lastChance(ORDER, "exchangeable"), null);
});

test("a kept exchange that was changed by somebody is none", () => {
  const exchange = { order: "7", tickets: [{ tier: "a", seat: "a1" }], worthMinor: 5 };
  assert.deepEqual(readExchange(exchange), exchange);
  for (const bad of [null, 7, {}, { ...exchange, tickets: [] }, { ...exchange, tickets: [{ tier: "a" }] }, { ...exchange, tickets: [null] }, { ...exchange, worthMinor: "5" }, { ...exchange, order: 7 }]) {
    assert.equal(readExchange(bad), null, JSON.stringify(bad));
  }
});

test("the old tickets pay new ones that cost no more, and dearer ones are paid in full", () => {
  const prices = { priceMinor: 18_000, feeMinor: 500 };
  const cheaper = exchangeSums(prices, 17_500, 9_900);
  assert.deepEqual(cheaper, { ...prices, goneMinor: 0, worthMinor: 17_500, newMinor: 9_900, pays: true, chargedMinor: 0, backMinor: 7_600 });
  const same = exchangeSums(prices, 17_500, 17_500);
  assert.deepEqual([same.pays, same.chargedMinor, same.backMinor], [true, 0, 0]);
  const dearer = exchangeSums(prices, 17_500, 17_501);
  assert.deepEqual([dearer.pays, dearer.chargedMinor, dearer.backMinor], [false, 17_501, 17_500]);
  assert.equal(exchangeSums(prices, 300, 9_900).goneMinor, 17_200);
});

test("tickets are worth no more than is left of their payment, which pays other orders too", () => {
  const payment = { provider: "stripe", payment: "pi_1", amount_minor: 21_000, currency: "EUR", outcome: "accepted", decided_at: "2026-05-01T10:01:00Z" } as const;
  const refund: OrderRefund = { order: "42", number: 1, tickets: [], amount_minor: 7_000, currency: "EUR", asked_by: "exchange", made_at: "2026-05-02T00:00:00Z", state: "due", changed_at: "2026-05-02T00:00:00Z" };
  const refunds: OrderRefund[] = [refund, { ...refund, number: 2, amount_minor: 1_000, kept_minor: 3_000, exchanged_for: "77" }];
  assert.equal(leftOf({ ...ORDER, payments: [{ ...payment, amount_minor: 1, outcome: "refund" }, payment] }, refunds), 10_000);
  assert.equal(leftOf(ORDER, []), 21_000, "a list tells no payments");
  assert.equal(leftOf({ ...ORDER, payments: [{ ...payment, outcome: "refund" }] }, []), 0);
  assert.equal(leftOf(ORDER, [{ amount_minor: 20_000, kept_minor: 3_000 }]), 0);
});

test("what exchanged tickets cost is known when they are gone", () => {
  const [front, back] = ORDER.lines;
  assert.ok(front !== undefined && back !== undefined);
  const order: Order = { ...ORDER, state: "refunded", lines: [{ ...front, exchangeable: { until: "2020-01-01T00:00:00Z", fee_minor: 90_000 } }, back] };
  assert.deepEqual(pricesOf(order, [{ tier: "front", seat: "A-2" }, { tier: "back", seat: "Z-1" }]), { priceMinor: 13_000, feeMinor: 8_000 });
});

test("money that was moved is told from a provider's", () => {
  assert.equal(movedFrom("169218430493097984-for-77"), "169218430493097984");
  assert.deepEqual(["pi_3", "cs-for-77", "7-for-", "x-7-for-8"].map(movedFrom), [null, null, null, null]);
});

test("a fee is no more than the price", () => {
  const cheap = { ...ORDER, lines: [{ tier: "t", price_minor: 100, refundable: { until: "2027-01-01T00:00:00Z", fee_minor: 500 }, tickets: [{ seat: "1" }] }] };
  assert.deepEqual(totalsOf(liveTickets(cheap, NOW)), { priceMinor: 100, feeMinor: 100, backMinor: 0 });
});

test("orders are merged by number, the newest first, and the one that changed later counts", () => {
  const newer: Order = { ...ORDER, state: "refunded", changed_at: "2026-05-02T00:00:00Z" };
  const [payments] = [[]];
  const known: Order[] = [{ ...ORDER, payments }];
  assert.equal(merged([newer], [ORDER])[0]?.state, "refunded");
  assert.deepEqual(merged(known, [newer])[0]?.payments, payments);
  const others = ["9", "169218430493097984", "1000"].map((order) => ({ ...ORDER, order }));
  assert.deepEqual(merged([], others).map(({ order }) => order), ["169218430493097984", "1000", "9"]);
});

test("a pending order whose time is over is called so", () => {
  const pending: Order = { ...ORDER, state: "pending" };
  assert.equal(stateWord(pending, Date.parse(ORDER.pay_by) - 1), "To be paid");
  assert.equal(stateWord(pending, Date.parse(ORDER.pay_by)), "Time to pay is over");
});

test("a request is repeated until it is answered, three times at most, and never after a refusal", async () => {
  const pauses: number[] = [];
  const pause = async (ms: number) => void pauses.push(ms);
  let calls = 0;
  const lost = OnsaleProblem.withoutAnswer(null);
  assert.equal(await repeated(async () => { calls += 1; if (calls < 3) throw lost; return "done"; }, pause), "done");
  assert.equal(pauses.length, 2);
  calls = 0;
  await assert.rejects(repeated(async () => { calls += 1; throw lost; }, pause));
  assert.equal(calls, 3);
  calls = 0;
  const refused = OnsaleProblem.fromResponse(409, null, { type: "/problems/ticket-refunded" });
  await assert.rejects(repeated(async () => { calls += 1; throw refused; }, pause), refused);
  assert.equal(calls, 1);
});
