import assert from "node:assert/strict";
import { test } from "node:test";

import { folded } from "./fold.ts";
import { daysOf, EVERYTHING, sections, stateOf, type Search, type Summary } from "./listing.ts";

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
  const { open, upcoming, past } = sections(SALES, { ...EVERYTHING, ...search }, NOW);
  return [open, upcoming, past].map((some) => some.map((one) => one.sale).join(""));
};

test("sales stand in their sections: what closes first, what opens first", () => {
  assert.deepEqual(ids({}), ["ab", "dc", "f"]);
  assert.deepEqual(ids({ all: true }), ["ab", "dc", "ef"]);
});

test("what is paused or sold out is shown too; what is over only on request", () => {
  const all = (["paused", "sold_out", "closed"] as const).map((state) => sale(state, state, "2026-05-01", "2026-09-01", state));
  assert.deepEqual(sections(all, EVERYTHING, NOW).past.map(({ state }) => state), ["paused", "sold_out"]);
});

test("titles are found by words, whatever case and accents", () => {
  assert.deepEqual(ids({ text: "QUAY theatre" }), ["b", "", ""]);
  assert.deepEqual(ids({ text: "北京" }), ["", "c", ""]);
  assert.deepEqual(ids({ text: "nothing" }), ["", "", ""]);
  assert.equal(folded("Ｔｈéâtre"), "theatre");
});

const at = (id: string, event: Summary["event"]): Summary => ({ ...sale(id, `Evening ${id}`, "2026-05-01", "2026-09-01"), ...(event === undefined ? {} : { event }) });
const EVENTS = [
  at("1", { starts_at: "2026-07-10T18:00:00Z", time_zone: "Europe/Vienna", category: "concert", performers: ["Béla Quartet"], venue: { name: "Lakeside", city: "Wien" } }),
  at("2", { starts_at: "2026-07-03T10:00:00Z", ends_at: "2026-07-05T22:30:00Z", time_zone: "Europe/Vienna", category: "festival" }),
  at("3", undefined),
  at("4", { starts_at: "2026-07-03T23:30:00Z", time_zone: "Asia/Shanghai", category: "theatre", venue: { name: "大剧院", city: "上海" } }),
];
const events = (search: Partial<Search>) => sections(EVENTS, { ...EVERYTHING, ...search }, NOW).open.map((one) => one.sale).join("");

test("events stand by their day, and what has none after them", () => {
  assert.equal(events({}), "2413");
  assert.deepEqual(daysOf(EVENTS[1]!), ["2026-07-03", "2026-07-06"], "by the clocks of the venue");
  assert.equal(daysOf(EVENTS[2]!), null);
});

test("an event is found by its performers, its venue and its city", () => {
  assert.equal(events({ text: "bela" }), "1");
  assert.equal(events({ text: "wien lakeside" }), "1");
  assert.equal(events({ text: "上海" }), "4");
  assert.equal(events({ text: "evening" }), "2413");
});

test("days and a category find events, each by the clocks of its venue", () => {
  assert.equal(events({ from: "2026-07-04", until: "2026-07-04" }), "24");
  assert.equal(events({ until: "2026-07-03" }), "2");
  assert.equal(events({ from: "2026-07-07" }), "1");
  assert.equal(events({ from: "2026-07-06", until: "2026-07-04" }), "2", "a festival has more than one day");
  assert.equal(events({ from: "2026" }), "2413");
  assert.equal(events({ category: "theatre" }), "4");
  assert.equal(events({ category: "sport" }), "");
});

test("a train stands by its departure, and is found by its day and its ends", () => {
  const route = { from: "Zürich HB", to: "Łódź", departs_at: "2026-07-08T21:40", arrives_at: "2026-07-09T08:05" };
  const train = { ...sale("n", "Nightjar", "2026-05-01", "2026-09-01"), route };
  assert.deepEqual(daysOf(train), ["2026-07-08", "2026-07-09"]);
  assert.deepEqual(daysOf({ route: { from: "A", to: "B" } }), null);
  assert.deepEqual(daysOf({ route: { from: "A", to: "B", departs_at: "2026-07-08T21:40" } }), ["2026-07-08", "2026-07-08"]);
  assert.deepEqual(daysOf({ route, event: EVENTS[0]!.event! }), ["2026-07-10", "2026-07-10"], "an event says more");
  const found = (search: Partial<Search>) => sections([...EVENTS, train], { ...EVERYTHING, ...search }, NOW).open.map((one) => one.sale).join("");
  assert.equal(found({}), "24n13");
  assert.equal(found({ text: "zurich lodz" }), "n");
  assert.equal(found({ from: "2026-07-09", until: "2026-07-09" }), "n");
});

test("a state moves on by the server's clock", () => {
  const coming = SALES[2]!;
  assert.equal(stateOf(coming, Date.parse(coming.opens_at)), "open");
  assert.equal(stateOf(coming, Date.parse(coming.closes_at)), "closed");
});
