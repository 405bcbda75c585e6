import assert from "node:assert/strict";
import { test } from "node:test";

import { dayBounds, folded, sections, stateOf, type Search, type Summary } from "./listing.ts";

const NOW = Date.parse("2026-06-01T12:00:00.000Z");
const sale = (id: string, title: string, opens: string, closes: string, state: Summary["state"] = "open"): Summary =>
  ({ sale: id, title, opens_at: `${opens}T10:00:00.000Z`, closes_at: `${closes}T10:00:00.000Z`, state });
const SALES = [
  sale("b", "Théâtre Old Quay", "2026-05-01", "2026-09-01"),
  sale("a", "Club Undertow", "2026-05-01", "2026-08-01"),
  sale("c", "G1307 北京南", "2026-06-10", "2026-08-01", "upcoming"),
  sale("d", "Stadium", "2026-06-05", "2026-08-01", "upcoming"),
  sale("e", "Old show", "2026-01-01", "2026-02-01", "closed"),
  sale("f", "Paused show", "2026-05-01", "2026-08-01", "paused"),
];
const ids = (search: Partial<Search>) => {
  const { open, upcoming, past } = sections(SALES, { title: "", date: "", all: false, ...search }, NOW);
  return [open, upcoming, past].map((some) => some.map((one) => one.sale).join(""));
};

test("sales stand in their sections: what closes first, what opens first", () => {
  assert.deepEqual(ids({}), ["ab", "dc", "f"]);
  assert.deepEqual(ids({ all: true }), ["ab", "dc", "ef"]);
});

test("titles are found by words, whatever case and accents", () => {
  assert.deepEqual(ids({ title: "QUAY theatre" }), ["b", "", ""]);
  assert.deepEqual(ids({ title: "北京" }), ["", "c", ""]);
  assert.deepEqual(ids({ title: "nothing" }), ["", "", ""]);
  assert.equal(folded("Ｔｈéâtre"), "theatre");
});

test("a date finds what is on sale on that day", () => {
  assert.deepEqual(ids({ date: "2026-06-05" }), ["ab", "d", "f"]);
  assert.deepEqual(ids({ date: "2026-08-20" }), ["b", "", ""]);
  assert.equal(dayBounds("2026"), null);
});

test("a state moves on by the server's clock", () => {
  const coming = SALES[2]!;
  assert.equal(stateOf(coming, Date.parse(coming.opens_at)), "open");
  assert.equal(stateOf(coming, Date.parse(coming.closes_at)), "closed");
});
