import assert from "node:assert/strict";
import { test } from "node:test";

import { allows, exportOrders, orderFrom, type Board, type FoundOrder } from "./api.ts";
import { bytesOf, isNotice } from "./controls.tsx";
import { aMinute, kept, lineOf, sampleOf, type Sample } from "./history.ts";
import { noticeOf, noticeTexts } from "./notice.ts";
import { MOST_REASON, reasonOf } from "./reason.ts";
import { changesOf, foreignChallenge, NotASaleFile, placesOf, planOf, pricesOf, readSaleFile, tierChanges, type SaleFile } from "./sale-file.ts";

const BOARD: Board = {
  sale: "hall", as_of: "2026-06-01T10:00:00Z", state: "open", currency: "EUR",
  room: {
    state: "serving", as_of: "2026-06-01T10:00:00Z", draw_closes_at: "2026-06-01T09:58:00Z", opens_at: "2026-06-01T10:00:00Z",
    groups: [{ group: "all", serving: 900, passed: 10, joined: 1_000, window: 1_000 }, { group: "fans", serving: 90, passed: 0, joined: 50, window: 50 }],
    rate: 200, record: 1, head: "0", poll: { min_seconds: 2, max_seconds: 60, jitter_percent: 30 },
  },
  tiers: [{ tier: "a", name: "A", seats: 100, available: 60, sold: 30, revenue_minor: 3_000 }, { tier: "b", name: "B", seats: 10, available: 0, sold: 10, revenue_minor: 500 }],
};

test("a right is a scope; an issuer that names none granted what was asked for", () => {
  assert.ok(allows("openid onsale/watch onsale/refund", "refund"));
  assert.ok(!allows("openid onsale/watch onsale/refund", "operate"));
  assert.ok(!allows("onsale/watchful", "watch"));
  assert.ok(allows("", "operate"));
});

test("the figures of a board; what is not known is not made up", () => {
  assert.deepEqual(sampleOf(BOARD, false).figures, { waiting: 100, served: 950, sold: 40, available: 60, held: 10, revenue: 3_500 });
  const blind: Board = { ...BOARD, room: null, tiers: [{ tier: "a", name: "A", seats: 100, sold: 30, revenue_minor: 3_000 }] };
  assert.deepEqual(sampleOf(blind, false).figures, { waiting: null, served: null, sold: 30, available: null, held: null, revenue: 3_000 });
  assert.equal(sampleOf(BOARD, true).figures.held, null, "on a train a seat is sold more than once");
});

const sampleAt = (seconds: number, sold: number | null): Sample => ({ atMs: seconds * 1_000, figures: { ...sampleOf(BOARD, false).figures, sold } });

test("samples of the last five minutes are kept, each moment once", () => {
  let samples: Sample[] = [];
  for (const [seconds, sold] of [[0, 1], [200, 2], [290, 3], [290, 4], [280, 5], [301, 6]] as const) samples = kept(samples, sampleAt(seconds, sold));
  assert.deepEqual(samples.map(({ atMs, figures }) => [atMs, figures.sold]), [[200_000, 2], [280_000, 5], [301_000, 6]]);
});

test("the change a minute, and the line", () => {
  assert.equal(aMinute([sampleAt(0, 0), sampleAt(9, 5)], "sold"), null);
  assert.equal(aMinute([sampleAt(0, 0), sampleAt(30, 50)], "sold"), 100);
  assert.equal(aMinute([sampleAt(0, 999), sampleAt(100, 0), sampleAt(160, 60)], "sold"), 60);
  assert.equal(aMinute([sampleAt(0, null), sampleAt(30, 50)], "sold"), null);
  assert.equal(lineOf([sampleAt(0, 1)], "sold"), "");
  assert.equal(lineOf([sampleAt(0, 0), sampleAt(5, null), sampleAt(10, 8)], "sold"), "M0.0 22.0L100.0 2.0");
  assert.equal(lineOf([sampleAt(0, 8), sampleAt(10, 8)], "sold"), "M0.0 12.0L100.0 12.0");
});

test("the next refund's number follows from the last, wherever the answer has it", () => {
  const order = { order: "1", refunds: { made: 2, back: 1 } } as unknown as FoundOrder;
  const whole = { order, buyer: "ann", payments: [], refunds: [], history: [] };
  assert.equal(orderFrom(whole).next, 3);
  assert.equal(orderFrom({ ...whole, order: { order: "1" } as unknown as FoundOrder }).next, 1);
  assert.equal(orderFrom(whole).order.buyer, "ann");
  assert.equal(orderFrom({ ...whole, refunds: [{ number: 50 } as never] }).next, null);
});

test("a notice is written in each language, and sent in those that have it", () => {
  assert.deepEqual(noticeTexts(null), { en: "", zh: "" });
  assert.deepEqual(noticeTexts("Back at noon"), { en: "Back at noon", zh: "Back at noon" });
  assert.deepEqual(noticeTexts({ "en-GB": "Noon", de: "Mittag" }), { en: "Noon", zh: "" });
  assert.deepEqual(noticeTexts({ "zh-Hant": "正午", zh: "中午" }), { en: "", zh: "中午" });
  assert.deepEqual(noticeOf({ en: " Noon ", zh: "中午" }), { en: "Noon", zh: "中午" });
  assert.deepEqual(noticeOf({ en: "", zh: "中".repeat(300) }), { zh: "中".repeat(300) });
  for (const bad of [" ", "中".repeat(301), "a\u0007b"]) assert.equal(noticeOf({ en: bad, zh: "" }), null, bad);
});

test("a reason is one line of at most 200 characters, however many bytes they have", () => {
  assert.equal(reasonOf("  the backup\n lost it "), "the backup lost it");
  assert.equal(reasonOf(" \t\n "), "");
  assert.equal(reasonOf("🎫".repeat(MOST_REASON)), "🎫".repeat(MOST_REASON));
  assert.equal(reasonOf("中".repeat(MOST_REASON + 1)), null);
});

test("pages of an export become one file with one heading", async () => {
  const pages = ["order,state\r\n1,paid\r\n", "order,state\r\n2,paid", "3,paid\r\n"];
  const lines: number[] = [];
  const parts = await exportOrders("hall", (count) => lines.push(count), async (_, cursor) => {
    const at = Number(cursor ?? 0);
    return { text: pages[at] ?? "", next: at < 2 ? String(at + 1) : null };
  });
  assert.equal(parts.join(""), "order,state\r\n1,paid\r\n2,paid\r\n3,paid\r\n");
  assert.equal(lines.length, 3);
});

test("a notice has 1 to 200 bytes on one line", () => {
  assert.ok(isNotice("Doors open at 7."));
  assert.equal(bytesOf("请稍候"), 9);
  assert.ok(isNotice("请".repeat(66)));
  for (const bad of ["", "请".repeat(67), "a\nb", "a\u0007"]) assert.ok(!isNotice(bad), bad);
});

const FILE: SaleFile = {
  sale: "hall", title: "Hall", currency: "EUR",
  tiers: [
    { tier: "stalls", name: "Stalls", price_minor: 5_000, not_for_sale: ["L-1-1"], sections: [{ section: "L", alike: ["R"], rows: [{ row: "1", to: "3", seats: { first: 1, count: 10, aisles_after: [5] } }, { row: "A", seats: ["x", null, "y"] }] }] },
    { tier: "floor", name: "Floor", price_minor: 2_000, general_admission: 200 },
  ],
};

test("a sale file is read, or it is said why not", () => {
  assert.equal(readSaleFile(JSON.stringify(FILE)).sale, "hall");
  for (const [text, reason] of [["{", "json"], ["[]", "sale"], ["{}", "sale"], ['{"sale":"a","tiers":[1]}', "sale"], ["null", "sale"]] as const) {
    assert.throws(() => readSaleFile(text), (thrown) => thrown instanceof NotASaleFile && thrown.reason === reason, text);
  }
});

test("places and prices are counted, and what is beyond the format's bounds is not", () => {
  assert.deepEqual(FILE.tiers.map(placesOf), [63, 200]);
  const wide = (count: number, to: string) => placesOf({ tier: "t", name: "T", sections: [{ section: "S", rows: [{ row: "1", to, seats: { first: 1, count } }] }] });
  assert.equal(wide(10, "100"), 1_000);
  for (const [count, to] of [[1e12, "2"], [10, "999999999"], [1_024, "1000"], [-1, "2"], [5, "1e9"], [5, "AAA"]] as const) assert.equal(wide(count, to), null, `${count} ${to}`);
  assert.equal(placesOf({ tier: "t", name: "T", sections: 5 as never }), 0);
  assert.deepEqual(pricesOf({ tier: "t", name: "T", fares: [{ from: "a", to: "b", price_minor: 5 }, { from: "a", to: "c", price_minor: 9 }] }), [5, 9]);
  assert.equal(pricesOf({ tier: "t", name: "T" }), null);
});

test("a plan is made of a file alone", () => {
  const plan = planOf(FILE);
  assert.equal(plan?.seats, 64);
  assert.equal(plan?.sections.length, 2);
  const lettered: SaleFile = { ...FILE, tiers: [{ tier: "c", name: "C", columns: ["A", null, "B"], sections: [{ section: "01", alike: ["02"], rows: [{ row: "1", to: "2", seats: "every_column" }] }] }] };
  assert.equal(planOf(lettered)?.seats, 8);
  assert.equal(planOf({ ...FILE, tiers: [{ tier: "t", name: "T", sections: [{ section: "S", rows: [{ row: "1", seats: { first: 1, count: 1e9 } }] }] }] }), null);
});

test("what changes is named; order of fields, offsets of times and defaults are no change", () => {
  const published = { title: "Hall", opens_at: "2026-06-01T08:00:00.000Z", state: "open", gate: { shards: 4, rate_per_second: 2_000 }, refunds: { until: "2026-05-01T00:00:00Z", fee_minor: 0 } };
  assert.deepEqual(changesOf(published, { title: "Hall", opens_at: "2026-06-01T10:00:00+02:00", gate: { rate_per_second: 2_000, shards: 4 }, refunds: { until: "2026-05-01T00:00:00Z" } }), []);
  // What operators have said of the sale is never a default: leaving it out takes it back.
  const taken = changesOf({ ...published, state: "paused", sold_out: true }, published).map(({ field }) => field);
  assert.deepEqual([...taken].sort(), ["sold_out", "state"]);
  assert.deepEqual(changesOf({ ...published, state: "open" }, published), []);
  assert.deepEqual(changesOf(published, { title: "Big Hall", opens_at: "2026-06-01T08:00:00Z", gate: { shards: 8 } }), [
    { field: "title", before: "Hall", after: "Big Hall" },
    { field: "gate.shards", before: "4", after: "8" },
    { field: "refunds", before: '{"fee_minor":0,"until":"2026-05-01T00:00:00Z"}', after: null },
  ]);
  const [stalls, floor] = FILE.tiers;
  assert.ok(stalls && floor);
  assert.deepEqual(tierChanges(FILE.tiers, [stalls, { ...floor, price_minor: 2_500 }]), [{ field: "floor.price_minor", before: "2000", after: "2500" }]);
});

test("a check of another company, which the pages cannot show, is seen before the sale is published", () => {
  const file = (challenges: unknown): SaleFile => ({ sale: "hall", tiers: [], challenges });
  assert.equal(foreignChallenge(file({ at: ["visit"], kind: "siteverify", siteverify: { provider: "turnstile", site_key: "x" } })), "turnstile");
  assert.equal(foreignChallenge(file({ kind: "siteverify" })), "siteverify");
  for (const challenges of [undefined, null, "siteverify", { kind: "proof_of_work" }]) assert.equal(foreignChallenge(file(challenges)), null);
});
