import assert from "node:assert/strict";
import { test } from "node:test";

import { readPlan } from "../map/plan.ts";
import { OnsaleProblem, type Schemas } from "../shared/api.ts";
import { type Choice, NOTHING, type Terms, faultOf, linesOf, mostTickets, readChoice, ticketTiers } from "./choice.ts";
import type { Order, OrderRefund } from "../order/words.ts";
import { type Known, comingOf, reviewOf } from "./exchange.ts";
import { sectionText, type Sale } from "./labels.ts";
import { type Attempt, type Line, type Surroundings, findOut, isOpen, orderLines } from "./ordering.ts";
import { movedTo, rowsOf } from "./section-grid.tsx";

const PLAN = readPlan(
  { tiers: [
    { tier: "front", name: "Stalls, front", price_minor: 1, sections: [{ section: "Stalls", rows: [{ row: "C", to: "D", seats: { first: 1, count: 3 } }, { row: "A", to: "B", seats: { first: 1, count: 3 } }] }] },
    { tier: "stalls", name: "Stalls", price_minor: 1, sections: [{ section: "Stalls", rows: [{ row: "E", seats: { first: 1, count: 3 } }] }] },
  ] },
  [{ tier: "front", rows: 4, row_bytes: 1, seats: 12 }, { tier: "stalls", rows: 1, row_bytes: 1, seats: 3 }],
);

test("sections of one name differ in category and price", () => {
  assert.deepEqual([0, 1].map((section) => sectionText(PLAN, section, "€1")), ["Stalls, front, €1", "Stalls, €1"]);
  const other = { ...PLAN, tiers: PLAN.tiers.map((tier) => ({ ...tier, name: `Category ${tier.id}` })) };
  assert.equal(sectionText(other, 1, "€1"), "Stalls, Category stalls, €1");
});

test("the grid's rows are A to D, and the keys move so", () => {
  const rows = rowsOf(PLAN, 0);
  const name = (seat: number | undefined) => PLAN.names[seat ?? -1];
  assert.deepEqual(rows.map((row) => PLAN.rows[row]?.label), ["A", "B", "C", "D"]);
  const b2 = PLAN.names.indexOf("Stalls-B-2");
  assert.deepEqual(["ArrowDown", "ArrowUp", "ArrowLeft", "End"].map((key) => name(movedTo(PLAN, rows, b2, key))), ["Stalls-C-2", "Stalls-A-2", "Stalls-B-1", "Stalls-B-3"]);
  assert.equal(movedTo(PLAN, rows, PLAN.names.indexOf("Stalls-A-1"), "ArrowUp"), undefined);
  assert.equal(movedTo(PLAN, rows, PLAN.names.indexOf("Stalls-D-1"), "ArrowDown"), undefined);
});

const TERMS: Terms = { limitPerBuyer: 4, remaining: null, isOneTierOnly: false, attendees: "optional" };
const seat = (tier: string, name: string) => ({ tier, seat: name, label: name });

test("a choice becomes lines, each tier once", () => {
  const choice: Choice = {
    ...NOTHING, way: "map", journey: { from: "A", to: "B" }, spots: { floor: 2 },
    seats: [seat("a", "a1"), seat("b", "b1"), seat("a", "a2")], attendees: ["1", "2", "3", "4", " 5 "],
  };
  assert.deepEqual(linesOf(choice, []), [
    { tier: "a", from: "A", to: "B", seats: ["a1", "a2"], attendees: ["1", "2"] },
    { tier: "b", from: "A", to: "B", seats: ["b1"], attendees: ["3"] },
    { tier: "floor", from: "A", to: "B", best: { count: 2, together: "preferred" }, attendees: ["4", "5"] },
  ]);
  assert.deepEqual(ticketTiers(choice), ["a", "a", "b", "floor", "floor"]);
  assert.deepEqual(linesOf({ ...NOTHING, tier: "a" }, []), [{ tier: "a", best: { count: 2, together: "required" } }]);
  const pattern = [{ column: "A", row: 1 }, { column: "F", row: 0 }, { column: "A", row: 0 }] as const;
  assert.deepEqual(linesOf({ ...NOTHING, way: "pattern", tier: "a", pattern }, ["A", null, "F"]), [
    { tier: "a", pattern: [{ column: "A", row: 0 }, { column: "F", row: 0 }, { column: "A", row: 1 }] },
  ]);
});

test("what cannot be ordered is said before it is sent", () => {
  const map: Choice = { ...NOTHING, way: "map", seats: [seat("a", "a1"), seat("b", "b1")] };
  assert.equal(faultOf(NOTHING, TERMS), "nothing");
  assert.equal(faultOf({ ...NOTHING, tier: "a", count: 5 }, TERMS), "too-many");
  assert.equal(faultOf({ ...NOTHING, tier: "a", count: 3 }, { ...TERMS, remaining: 2 }), "too-many");
  assert.equal(faultOf(map, { ...TERMS, remaining: 0 }), "no-allowance");
  assert.equal(faultOf(map, { ...TERMS, isOneTierOnly: true }), "one-tier");
  assert.equal(faultOf(map, { ...TERMS, attendees: "required" }), "attendees-missing");
  assert.equal(faultOf({ ...map, attendees: ["P", ""] }, TERMS), "attendees-some");
  assert.equal(faultOf({ ...map, attendees: ["P", "P "] }, TERMS), "attendees-twice");
  assert.equal(faultOf(map, TERMS), undefined);
  // What is exchanged makes room for as much, and no more.
  const exchanging = { ...TERMS, remaining: 0, exchanged: 2 };
  assert.equal(faultOf(map, exchanging), undefined);
  assert.equal(faultOf({ ...NOTHING, tier: "a", count: 3 }, exchanging), "exchange-count");
  assert.equal(faultOf({ ...NOTHING, tier: "a", count: 1 }, exchanging), "exchange-count");
  assert.deepEqual([mostTickets(TERMS), mostTickets({ ...TERMS, limitPerBuyer: 99 })], [4, 10]);
});

test("a kept choice that was changed by somebody is read as far as it can be", () => {
  assert.deepEqual(readChoice("x"), NOTHING);
  const read = readChoice({ way: "script", count: -3, journey: { from: 1 }, seats: [7, seat("a", "a1")], spots: { a: 1e9, b: 2 }, pattern: [{ column: "A", row: 7 }] });
  assert.deepEqual(read, { ...NOTHING, seats: [seat("a", "a1")], spots: { b: 2 } });
});

const refusal = (slug: string, status: number, more: object = {}): OnsaleProblem =>
  OnsaleProblem.fromResponse(status, null, { type: `/problems/${slug}`, ...more });
const LINES: Line[] = [{ tier: "a", seats: ["a1"] }];
const admission = (order: string, expires = "2030-01-01T00:00:00Z") => ({ token: `t${order}`, order, expires_at: expires, tickets: 2 });
const ordered = (order: string) => ({ order }) as Schemas["OrderReply"];

interface Script {
  admissions: (Schemas["AdmissionReply"] | OnsaleProblem)[];
  orders: (Schemas["OrderReply"] | OnsaleProblem)[];
  kept?: Attempt | null;
  patience?: number;
}

/** Surroundings that answer one thing after the other, and what was sent. */
function scripted(script: Script) {
  const sent: { admissions: unknown[]; orders: unknown[]; waits: number[] } = { admissions: [], orders: [], waits: [] };
  let kept = script.kept ?? null;
  const next = <T>(list: (T | OnsaleProblem)[]): Promise<T> => {
    const one = list.shift();
    assert.ok(one !== undefined, "asked once more than expected");
    return one instanceof OnsaleProblem ? Promise.reject(one) : Promise.resolve(one);
  };
  const around: Surroundings = {
    admit: (body) => { sent.admissions.push(body); return next(script.admissions); },
    order: (body) => { sent.orders.push(structuredClone(body)); return next(script.orders); },
    problem: (thrown) => thrown as OnsaleProblem,
    nowMs: () => Date.parse("2026-01-01T00:00:00Z"),
    wait: (ms) => { sent.waits.push(ms); return Promise.resolve(sent.waits.length <= (script.patience ?? 99)); },
    random: () => 0,
    keep: (attempt) => { kept = attempt; },
    kept: () => kept,
    place: () => null,
    onStep: () => {},
  };
  return { around, sent, kept: () => kept };
}

test("a lost answer is found by the same request with the same admission", async () => {
  const lost = OnsaleProblem.withoutAnswer("gone");
  const { around, sent, kept } = scripted({ admissions: [admission("7")], orders: [lost, refusal("outcome-unknown", 503, { retry_after_seconds: 2 }), ordered("7")] });
  assert.deepEqual(await orderLines(around, LINES), { kind: "ordered", order: "7", wasEarlier: false });
  assert.equal(sent.orders.length, 3);
  assert.deepEqual(new Set(sent.orders.map((body) => JSON.stringify(body))).size, 1);
  assert.ok((sent.waits[1] ?? 0) >= 2000);
  assert.equal(kept(), null);
});

test("what was sent is kept before it is sent, and found out after the page was loaded again", async () => {
  const first = scripted({ admissions: [admission("7")], orders: [OnsaleProblem.withoutAnswer("gone")], patience: 0 });
  assert.deepEqual(await orderLines(first.around, LINES), { kind: "stopped" });
  assert.ok(isOpen(first.around));
  const second = scripted({ admissions: [], orders: [ordered("7")], kept: first.kept() });
  assert.deepEqual(await findOut(second.around), { kind: "ordered", order: "7", wasEarlier: true });
  assert.deepEqual(second.sent.orders, first.sent.orders);
});

test("an exchange is sent with the order, and again as it was when its answer is lost", async () => {
  const exchange = { order: "3", tickets: [{ tier: "b", seat: "b1" }] };
  const { around, sent, kept } = scripted({ admissions: [admission("7")], orders: [OnsaleProblem.withoutAnswer("gone")], patience: 0 });
  assert.deepEqual(await orderLines(around, LINES, undefined, exchange), { kind: "stopped" });
  assert.deepEqual(sent.orders, [{ admission: "t7", lines: LINES, exchange }]);
  const second = scripted({ admissions: [], orders: [ordered("7")], kept: kept() });
  assert.equal((await findOut(second.around)).kind, "ordered");
  assert.deepEqual(second.sent.orders, sent.orders);
  // One that differs uses no admission up.
  const differs = scripted({ admissions: [admission("7")], orders: [refusal("exchange-differs", 422), ordered("7")] });
  assert.equal((await orderLines(differs.around, LINES, undefined, exchange)).kind, "refused");
  assert.equal((await orderLines(differs.around, LINES)).kind, "ordered");
  assert.equal(differs.sent.admissions.length, 1);
});

test("nothing else is ordered while an answer is missing", async () => {
  const kept = { admission: admission("7"), lines: LINES, isOpen: true };
  const other: Line[] = [{ tier: "a", seats: ["a2"] }];
  const made = scripted({ admissions: [], orders: [ordered("7")], kept });
  assert.deepEqual(await orderLines(made.around, other), { kind: "ordered", order: "7", wasEarlier: true });
  assert.deepEqual(made.sent.orders, [{ admission: "t7", lines: LINES }]);
  // It was refused: its admission is good for the other lines.
  const refused = scripted({ admissions: [], orders: [refusal("seat-taken", 409, { tier: "a", seats: ["a1"] }), ordered("7")], kept });
  assert.deepEqual(await orderLines(refused.around, other), { kind: "ordered", order: "7", wasEarlier: false });
  assert.deepEqual(refused.sent.orders[1], { admission: "t7", lines: other });
  // Nobody signed in: it stays open.
  const out = scripted({ admissions: [], orders: [refusal("not-authenticated", 401)], kept });
  assert.equal((await orderLines(out.around, other)).kind, "refused");
  assert.ok(isOpen(out.around));
});

test("after taken seats the same admission is used again", async () => {
  const taken = refusal("seat-taken", 409, { tier: "a", seats: ["a1"] });
  const { around, sent } = scripted({ admissions: [admission("7")], orders: [taken, ordered("7")] });
  assert.deepEqual(await orderLines(around, LINES), { kind: "taken", tier: "a", seats: ["a1"] });
  assert.deepEqual(await orderLines(around, [{ tier: "a", seats: ["a2"] }]), { kind: "ordered", order: "7", wasEarlier: false });
  assert.deepEqual([sent.admissions.length, sent.orders.length], [1, 2]);
});

test("an admission that has run out is asked for anew", async () => {
  const kept = { admission: admission("6", "2025-01-01T00:00:00Z"), lines: LINES, isOpen: false };
  const { around, sent } = scripted({ admissions: [admission("7"), admission("8")], orders: [refusal("not-admitted", 403), ordered("8")], kept });
  assert.deepEqual(await orderLines(around, LINES), { kind: "ordered", order: "8", wasEarlier: false });
  assert.equal(sent.admissions.length, 2);
});

test("a challenge is handed on, and its answer sent with the next request", async () => {
  const challenge = { kind: "question", token: "t", question: "?" };
  const { around, sent } = scripted({ admissions: [refusal("challenge-required", 403, { challenge }), refusal("waiting", 429), admission("7")], orders: [ordered("7")] });
  assert.deepEqual(await orderLines(around, LINES), { kind: "challenge", challenge, failed: false });
  const answer = { token: "t", answer: "x" };
  assert.equal((await orderLines(around, LINES, answer)).kind, "ordered");
  assert.deepEqual(sent.admissions.slice(1), [{ tickets: 1, challenge: answer }, { tickets: 1, challenge: answer }]);
});

test("a place that is not due leads back to the room, and a used admission to its order", async () => {
  const room = scripted({ admissions: [refusal("place-not-due", 429, { ahead: 4, retry_after_seconds: 9 })], orders: [] });
  assert.equal((await orderLines(room.around, LINES)).kind, "room");
  const reused = scripted({ admissions: [admission("7")], orders: [refusal("token-reused", 422, { order: "7", state: "pending" })] });
  assert.deepEqual(await orderLines(reused.around, LINES), { kind: "ordered", order: "7", wasEarlier: true });
});

const SALE = {
  sale: "hall", title: "Hall", file: { currency: "EUR", tiers: [
    { tier: "a", name: "Stalls", price_minor: 8_000 }, { tier: "b", name: "Balcony", price_minor: 5_000 },
    { tier: "floor", name: "Floor", price_minor: 3_000, general_admission: 9 }, { tier: "r", name: "Rail", fares: [{ from: "A", to: "B", price_minor: 700 }] },
  ] },
} as unknown as Sale;

test("what an exchange brings: seats, or so many of a category of which the place is chosen later", () => {
  const map: Choice = { ...NOTHING, way: "map", seats: [seat("a", "a1"), seat("b", "b1")], spots: { floor: 2, a: 0 } };
  assert.deepEqual(comingOf(SALE, map), [
    { kind: "seat", tier: "Stalls", count: 1, label: "a1", priceMinor: 8_000 }, { kind: "seat", tier: "Balcony", count: 1, label: "b1", priceMinor: 5_000 },
    { kind: "standing", tier: "Floor", count: 2, label: "", priceMinor: 3_000 },
  ]);
  const kindOf = (choice: Partial<Choice>) => comingOf(SALE, { ...NOTHING, ...choice }).map(({ kind, count, label }) => [kind, count, label]);
  assert.deepEqual(kindOf({ tier: "a" }), [["together", 2, ""]]);
  assert.deepEqual(kindOf({ tier: "a", isTogether: false }), [["apart", 2, ""]]);
  assert.deepEqual(kindOf({ tier: "a", isTogether: false, count: 1 }), [["best", 1, ""]]);
  assert.deepEqual(kindOf({ tier: "floor", count: 1 }), [["standing", 1, ""]]);
  assert.deepEqual(kindOf({ way: "pattern", tier: "a", pattern: [{ column: "A", row: 0 }, { column: "F", row: 1 }] }), [["pattern", 2, "A, F"]]);
});

test("an exchange is reviewed by what is known now, and is none if its tickets or its terms are gone", () => {
  const now = Date.parse("2026-06-01T10:00:00Z");
  const order: Order = {
    order: "3", sale: "hall", state: "paid", currency: "EUR", amount_minor: 16_000, created_at: "2026-05-01T10:00:00Z", pay_by: "2026-05-01T10:10:00Z", changed_at: "2026-05-01T10:01:00Z",
    lines: [{ tier: "a", price_minor: 8_000, exchangeable: { until: "2026-06-01T10:00:01Z", fee_minor: 500 }, tickets: [{ seat: "a1" }, { seat: "a2", refund: 1 }] }],
    payments: [{ provider: "alipay", payment: "p", amount_minor: 16_000, currency: "EUR", outcome: "accepted", decided_at: "2026-05-01T10:01:00Z" }],
  };
  const known: Known = { order, refunds: [], sale: SALE };
  const exchange = { order: "3", tickets: [{ tier: "a", seat: "a1" }] };
  const choice: Choice = { ...NOTHING, tier: "b", count: 1 };
  const review = reviewOf(known, choice, exchange, now);
  assert.ok(review.kind === "known");
  assert.deepEqual(review.given.map(({ tier, seat, priceMinor }) => [tier, seat, priceMinor]), [["a", "a1", 8_000]]);
  assert.deepEqual([review.sums.worthMinor, review.sums.newMinor, review.sums.chargedMinor, review.sums.backMinor, review.provider], [7_500, 5_000, 0, 2_500, "alipay"]);
  const refund: OrderRefund = { order: "3", number: 1, tickets: [], amount_minor: 12_000, currency: "EUR", asked_by: "operator", made_at: "2026-05-02T00:00:00Z", state: "due", changed_at: "2026-05-02T00:00:00Z" };
  const less = reviewOf({ ...known, refunds: [refund] }, choice, exchange, now);
  assert.ok(less.kind === "known");
  assert.deepEqual([less.sums.goneMinor, less.sums.worthMinor, less.sums.chargedMinor, less.sums.backMinor], [3_500, 4_000, 5_000, 4_000]);
  assert.equal(reviewOf(known, choice, exchange, now + 1_000).kind, "over");
  assert.equal(reviewOf(known, choice, { ...exchange, tickets: [{ tier: "a", seat: "a2" }] }, now).kind, "gone");
  assert.equal(reviewOf({ ...known, order: { ...order, state: "refunded" } }, choice, exchange, now).kind, "gone");
  assert.equal(reviewOf(known, { ...choice, tier: "r", journey: { from: "B", to: "A" } }, exchange, now).kind, "unsold");
});
