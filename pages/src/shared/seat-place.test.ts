import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import type { FileForMap } from "../map/plan.ts";
import { placeOf, seatText } from "./seat-place.ts";

const sample = (name: string): FileForMap => JSON.parse(readFileSync(`../sales/${name}.json`, "utf8")) as FileForMap;

test("a seat is said by section, row and seat, whatever the engine calls it", () => {
  const theatre = sample("theatre-old-quay");
  const said = ["Stalls side-1W", "Stalls-F-11", "Circle left-B-1", "Gallery-G-6", "Box B-front-2"].map((name) => seatText(theatre, name));
  assert.deepEqual(said, [
    "Section Stalls side, row 1, seat W", "Section Stalls, row F, seat 11", "Section Circle left, row B, seat 1", "Section Gallery, row G, seat 6",
    "Section Box B, row front, seat 2",
  ]);
  assert.deepEqual(placeOf(theatre, "Stalls side-1W"), { section: "Stalls side", row: "1", seat: "W" });
  assert.equal(seatText(sample("demo-stadium"), "box1-5"), "Section Box 1, row back, seat 5");
  assert.equal(seatText(sample("stadium-kestrel-park"), "118-H-20"), "Section 118, row H, seat 20");
});

test("on a train coach and seat are apart", () => {
  assert.equal(seatText(sample("g-train-g1307"), "04-01A"), "Coach 04, seat 01A");
  // Rows of this file are called 1 and 2, and the seats 01A and 02A.
  assert.equal(seatText(sample("demo-train"), "16-02F"), "Coach 16, seat 02F");
  assert.equal(seatText({ stops: [{ stop: "X", name: "x" }], tiers: [{ tier: "t", name: "T", columns: ["A"], sections: [{ section: "1", rows: [{ row: "7", seats: ["window"] }] }] }] }, "window"), "Coach 1, seat 7window");
});

test("what the layout does not know keeps its name", () => {
  const theatre = sample("theatre-old-quay");
  for (const name of ["Stalls-F-25", "Stalls-F-0", "Stalls-F-1x", "Stalls-F-", "Stalls-O-1", "Circle left-B-2", "Stalls side-1X", "", "demo-floor-7"]) {
    assert.equal(placeOf(theatre, name), null, name);
    assert.equal(seatText(theatre, name), name);
  }
  assert.equal(seatText(sample("demo-club"), "floor-12"), "floor-12");
  assert.equal(seatText(null, "Stalls-F-11"), "Stalls-F-11");
});

test("a name that ends with the letter of its column has it as its seat, past aisles too; another is said as it is", () => {
  const lettered = { tier: "t", name: "T", columns: ["A", null, "B"], sections: [{ section: "S", rows: [{ row: "1", seats: ["one A", null, "one B"] }] }] };
  assert.deepEqual(placeOf({ tiers: [lettered] }, "one B"), { section: "S", row: "1", seat: "B" });
  const tier = { tier: "t", name: "T", columns: ["A", null, "B", "C"], sections: [{ section: "S", rows: [{ row: "1", seats: { prefix: "x", first: 5, count: 3, step: -1, aisles_after: [5] } }] }] };
  assert.deepEqual(placeOf({ tiers: [tier] }, "x4"), { section: "S", row: "1", seat: "x4" });
});
