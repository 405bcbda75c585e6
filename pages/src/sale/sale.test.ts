import assert from "node:assert/strict";
import { test } from "node:test";

import { OnsaleProblem } from "onsale-client";

import type { RoomDocument } from "../room/standing.ts";
import type { KeptPlace } from "../shared/place.ts";
import { bodyOf, outcomeOf, placeOf } from "./join.ts";
import { refundTerms } from "./terms.ts";
import { nextStep, phaseOf, type Sale, type Situation } from "./next-step.ts";

const OPENS = Date.parse("2026-06-01T08:00:00.000Z");
const SALE = {
  sale: "s", title: "A <b>show</b>", opens_at: "2026-06-01T08:00:00.000Z", closes_at: "2026-07-01T08:00:00.000Z", state: "upcoming", version: 1, tiers: [],
  file: { sale: "s", title: "A <b>show</b>", currency: "EUR", opens_at: "2026-06-01T08:00:00.000Z", closes_at: "2026-07-01T08:00:00.000Z", limit_per_buyer: 4, pay_window_seconds: 600, tiers: [{ tier: "a", name: "Stalls", price_minor: 1 }] },
} as unknown as Sale;
const roomed = (settings: object = {}): Sale => ({ ...SALE, file: { ...SALE.file, room: settings } });
const ROOM: RoomDocument = {
  state: "serving", as_of: SALE.opens_at, draw_closes_at: "2026-06-01T07:58:00.000Z", opens_at: SALE.opens_at, rate: 1, record: 3, head: "00",
  groups: [{ group: "all", serving: 10, passed: 2, joined: 40, window: 40, seed: "00", count: 40 }], poll: { min_seconds: 2, max_seconds: 60, jitter_percent: 30 },
};
const KEPT: KeptPlace = { sale: "s", token: "t", group: "all", index: 3, window: "first", nonce: "00", place: 20, joinedAtMs: 0 };
const situation = (changes: Partial<Situation>): Situation =>
  ({ sale: SALE, room: null, kept: null, isSignedIn: false, again: false, nowMs: OPENS - 3_600_000, left: null, ...changes });
const stepOf = (changes: Partial<Situation>) => {
  const { step, saying } = nextStep(situation(changes));
  return [step, saying];
};

test("the terms of giving back are told by category where they differ", () => {
  const refunds = { until: "2026-06-01T00:00:00Z", fee_percent: 10, fee_minor: 50 };
  const [a, b, c] = ["A", "B", "C"].map((name) => ({ name }));
  assert.ok(a && b && c);
  assert.deepEqual(refundTerms({ tiers: [a, b] }), [{ tiers: ["A", "B"], terms: null }]);
  assert.deepEqual(refundTerms({ refunds, tiers: [a, b] }), [{ tiers: ["A", "B"], terms: refunds }]);
  const same = { ...refunds, until: "2026-06-01T02:00:00+02:00" };
  assert.deepEqual(refundTerms({ refunds, tiers: [a, { ...b, refunds: { until: refunds.until } }, { ...c, refunds: same }] }), [
    { tiers: ["A", "C"], terms: refunds }, { tiers: ["B"], terms: { until: refunds.until } },
  ]);
});

test("the phase moves on by the server's clock, between two answers", () => {
  assert.equal(phaseOf(SALE, OPENS - 1), "upcoming");
  assert.equal(phaseOf(SALE, OPENS), "open");
  assert.equal(phaseOf(SALE, Date.parse(SALE.closes_at)), "closed");
  assert.equal(phaseOf({ ...SALE, state: "paused" }, OPENS), "paused");
  assert.equal(phaseOf({ ...SALE, state: "cancelled" }, OPENS), "cancelled");
});

test("a sale without a room: sign in, wait, choose", () => {
  assert.deepEqual(stepOf({}), ["sign-in-wait", "sign-in-wait"]);
  assert.deepEqual(stepOf({ isSignedIn: true }), ["wait", "wait"]);
  assert.deepEqual(nextStep(situation({})).until, { what: "opening", atMs: OPENS });
  assert.deepEqual(stepOf({ nowMs: OPENS }), ["choose", "choose"]);
  assert.deepEqual(stepOf({ nowMs: OPENS, left: 0 }), ["choose", "sold_out"]);
});

test("a sale that its operator says is sold out leads nowhere, but to a place that is kept", () => {
  const sold = (sale: Sale): Sale => ({ ...sale, state: "sold_out" });
  assert.equal(phaseOf(sold(SALE), OPENS), "sold_out");
  assert.deepEqual(stepOf({ sale: sold(SALE), nowMs: OPENS, left: 9 }), [null, "sold_out"]);
  assert.deepEqual(stepOf({ sale: sold(roomed()), room: ROOM, kept: KEPT }), ["room", "sold_out"]);
});

test("a sale with a room: sign in, join, wait, choose", () => {
  const sale = roomed();
  assert.deepEqual(stepOf({ sale }), ["sign-in", "sign-in"]);
  assert.deepEqual(stepOf({ sale, isSignedIn: true }), ["join", "join"]);
  assert.deepEqual(nextStep(situation({ sale })).until, { what: "draw", atMs: OPENS - 300_000 });
  assert.deepEqual(nextStep(situation({ sale, nowMs: OPENS - 60_000 })).until, { what: "opening", atMs: OPENS });
  assert.deepEqual(stepOf({ sale, kept: KEPT, room: ROOM, nowMs: OPENS }), ["room", "room"]);
  const due = { sale, kept: { ...KEPT, place: 5 }, room: ROOM, nowMs: OPENS };
  assert.deepEqual(stepOf(due), ["sign-in-choose", "due"]);
  assert.deepEqual(stepOf({ ...due, isSignedIn: true }), ["choose", "due"]);
  assert.deepEqual(stepOf({ ...due, isSignedIn: true, room: { ...ROOM, state: "paused" } }), ["room", "room"]);
  assert.deepEqual(stepOf({ ...due, isSignedIn: true, again: true }), ["join-again", "join-again"]);
  assert.deepEqual(stepOf({ sale, isSignedIn: true, nowMs: OPENS }), ["join", "join-late"]);
});

test("a room says when nobody may join", () => {
  const later = roomed({ joins_open_at: "2026-06-01T07:30:00.000Z" });
  assert.deepEqual(stepOf({ sale: later }), ["sign-in-wait", "joining-later"]);
  assert.deepEqual(stepOf({ sale: later, isSignedIn: true }), ["wait-join", "joining-later"]);
  assert.deepEqual(stepOf({ sale: roomed({ registered_only: true }), isSignedIn: true, nowMs: OPENS }), ["join", "registration-over"]);
  assert.deepEqual(stepOf({ sale: roomed(), room: { ...ROOM, state: "closed" }, nowMs: OPENS }), [null, "room-closed"]);
  assert.deepEqual(stepOf({ sale: roomed(), room: { ...ROOM, state: "sold_out" }, kept: KEPT, nowMs: OPENS }), ["room", "sold_out"]);
});

test("a sale that takes nothing has no button", () => {
  for (const state of ["closed", "cancelled", "archived"] as const) {
    assert.deepEqual(stepOf({ sale: { ...SALE, state } }), [null, state]);
  }
  assert.deepEqual(stepOf({ sale: { ...SALE, state: "paused" } }), [null, "paused"]);
  assert.deepEqual(stepOf({ sale: { ...roomed(), state: "paused" }, kept: KEPT }), ["room", "paused"]);
});

test("joining sends what was entered, and keeps what the room needs", () => {
  assert.deepEqual(bodyOf({ group: "all", code: " ", moreTime: false }, null), { group: "all" });
  assert.deepEqual(bodyOf({ group: "fans", code: " 7K2M ", moreTime: true }, { token: "t", answer: "a" }), { group: "fans", more_time: true, code: "7K2M", challenge: { token: "t", answer: "a" } });
  const token = `x.${Buffer.from('{"sub":"alice"}').toString("base64url")}.y`;
  const place = placeOf(SALE, { place_token: "p", group: "all", window: "later", index: 7, nonce: "00", standing: "certain" }, token, 5);
  assert.deepEqual(place, { sale: "s", token: "p", group: "all", index: 7, window: "later", nonce: "00", place: null, joinedAtMs: 5, buyer: "alice", title: SALE.title, tiers: ["Stalls"] });
});

test("refusals that pass are repeated, others are said", () => {
  const refused = (slug: string, more: object = {}) => outcomeOf(OnsaleProblem.fromResponse(403, null, { type: `/problems/${slug}`, ...more }));
  const busy = refused("too-many-requests", { retry_after_seconds: 4 });
  assert.ok(busy.kind === "again" && busy.afterMs >= 4_000 && busy.afterMs < 6_000);
  const challenge = { kind: "question", token: "t", question: "?", expires_at: "" };
  assert.deepEqual(refused("challenge-failed", { challenge }), { kind: "challenge", challenge, failed: true });
  assert.equal(refused("code-refused").kind, "refused");
});
