import assert from "node:assert/strict";
import { test } from "node:test";

import { asked, dayOf, journeyQuery, leftOf, railwayTime } from "./timetable.ts";

test("today is a day of the reader's time zone", () => {
  assert.equal(dayOf(new Date(2026, 0, 5, 0, 0, 1).getTime()), "2026-01-05");
  assert.equal(dayOf(new Date(2026, 10, 21, 23, 59, 59).getTime()), "2026-11-21");
});

test("a search is sent without the blanks around its stops", () => {
  assert.deepEqual(asked({ date: "2026-11-21", from: " 北京南", to: "Ko\u0308ln " }), { date: "2026-11-21", from: "北京南", to: "Köln" });
});

test("a time of the railway is written as it is, whatever the reader's time zone", () => {
  const zone = process.env.TZ;
  try {
    for (const other of ["America/New_York", "Asia/Shanghai", "UTC"]) {
      process.env.TZ = other;
      // At half past two on this day no clock of New York stands.
      assert.match(railwayTime("2026-03-08T02:30", "en"), /Mar 8, 2026.*2:30/);
      assert.match(railwayTime("2026-11-22T00:05", "zh"), /2026年11月22日.*00:05/);
    }
  } finally {
    if (zone === undefined) delete process.env.TZ; else process.env.TZ = zone;
  }
  assert.equal(railwayTime("soon", "en"), "soon");
});

test("a sale is opened on the journey by the ids of its stops", () => {
  assert.equal(journeyQuery({ from: { stop: "VNP", name: "北京南" }, to: { stop: "N&H", name: "宁波" } }), "from=VNP&to=N%26H");
});

test("what is not known is not sold out", () => {
  const tier = { tier: "t", name: "T", price_minor: 1 };
  assert.deepEqual([leftOf(tier), leftOf({ ...tier, available: 0 }), leftOf({ ...tier, available: 3 })], ["unknown", "gone", "left"]);
});
