import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Camera } from "./camera.ts";
import { hullOf, readMapDocument } from "./document.ts";
import { SeatGrid } from "./grid.ts";
import { layOut } from "./lay-out.ts";
import { isWithin } from "./layout.ts";
import { insteadOfSingle, nearestFree, nearestTogether, singlesLeft } from "./nearest.ts";
import { type FileForMap, type FileTier, type Plan, PlanMismatch, type TierGrid, readPlan, rowLabels, shortName } from "./plan.ts";
import { rowOrder } from "./rows.ts";
import { choosesAt, choosesFrom } from "./press.ts";
import { CHOSEN, FREE, LOST, TAKEN, UNKNOWN, readAvailability, taken, writeStates } from "./state.ts";
import { ringOf } from "./stadium.ts";
import { levelOf } from "./hall.ts";
import { placeOfTip } from "./tip.ts";
import { coachesPerLine } from "./train.ts";
import { afterFailureMs, nextMs } from "./watch.ts";

const WORDS = { stage: "Stage", pitch: "Pitch" };

/** The grids that the engine would answer, from a plan read once without them. */
function gridsOf(file: FileForMap): TierGrid[] {
  return file.tiers.map((tier) => {
    if (tier.general_admission) return { tier: tier.tier, rows: Math.ceil(tier.general_admission / 64), row_bytes: 8, seats: tier.general_admission };
    let rows = 0;
    let longest = 1;
    for (const section of tier.sections ?? []) {
      for (let copy = 0; copy <= (section.alike ?? []).length; copy += 1) {
        rows += (tier.columns ?? []).length > 0 && rows > 0 ? 1 : 0;
        for (const row of section.rows) {
          rows += rowLabels(row).length;
          const places = Array.isArray(row.seats) ? row.seats.length
            : row.seats === "every_column" ? (tier.columns ?? []).length : row.seats.count + (row.seats.aisles_after ?? []).length;
          longest = Math.max(longest, places);
        }
      }
    }
    return { tier: tier.tier, rows, row_bytes: Math.ceil(longest / 8), seats: 0 };
  });
}

const planOf = (file: FileForMap): Plan => readPlan(file, gridsOf(file));
const sample = (name: string): FileForMap => JSON.parse(readFileSync(`../sales/${name}.json`, "utf8")) as FileForMap;

const TRAIN: FileTier = {
  tier: "second", name: "Second", price_minor: 100, columns: ["A", null, "B"],
  sections: [{ section: "01", alike: ["02"], rows: [{ row: "1", to: "2", seats: "every_column" }] }],
};

test("rows are named as the engine names them", () => {
  assert.deepEqual(rowLabels({ row: "Y", to: "AB", seats: [] }), ["Y", "Z", "AA", "AB"]);
  assert.deepEqual(rowLabels({ row: "08", to: "11", seats: [] }), ["08", "09", "10", "11"]);
  assert.deepEqual(rowLabels({ row: "3", to: "1", seats: [] }), ["3", "2", "1"]);
  assert.deepEqual(rowLabels({ row: "front", seats: [] }), ["front"]);
});

test("rows come in the order in which people look for them", () => {
  const ordered = (...labels: string[]): string[] => rowOrder(labels).map((at) => labels[at] ?? "");
  assert.deepEqual(ordered("C", "D", "AA", "A", "B"), ["A", "B", "C", "D", "AA"]);
  assert.deepEqual(ordered("10", "2", "1"), ["1", "2", "10"]);
  assert.deepEqual(ordered("R10", "R2", "2"), ["2", "R2", "R10"]);
  assert.deepEqual(ordered("front", "back"), ["front", "back"]);
  assert.deepEqual(ordered(), []);
});

test("a blank row lies between two sections of a tier with column letters", () => {
  const plan = readPlan({ stops: [{ stop: "X", name: "x" }], tiers: [TRAIN] }, [{ tier: "second", rows: 5, row_bytes: 1, seats: 8 }]);
  assert.deepEqual(plan.names, ["01-1A", "01-1B", "01-2A", "01-2B", "02-1A", "02-1B", "02-2A", "02-2B"]);
  assert.deepEqual([...plan.bitOf], [0, 2, 8, 10, 24, 26, 32, 34]);
  assert.equal(shortName(plan, 1), "B");
  assert.throws(() => readPlan({ tiers: [TRAIN] }, [{ tier: "second", rows: 4, row_bytes: 1, seats: 8 }]), PlanMismatch);
});

test("a run has its aisles, its step and its names", () => {
  const tier: FileTier = {
    tier: "a", name: "A", price_minor: 1, not_for_sale: ["S-1-19"],
    sections: [{ section: "S", rows: [{ row: "1", seats: { first: 21, count: 3, step: -2, aisles_after: [21] } }] }],
  };
  const plan = planOf({ tiers: [tier] });
  assert.deepEqual(plan.names, ["S-1-21", "S-1-19", "S-1-17"]);
  assert.deepEqual([...plan.placeOf], [0, 2, 3]);
  assert.deepEqual([...plan.withheld], [0, 1, 0]);
  assert.equal(shortName(plan, 0), "21");
});

test("availability is read bit by bit, the most significant first", () => {
  const plan = readPlan({ stops: [{ stop: "X", name: "x" }], tiers: [TRAIN] }, [{ tier: "second", rows: 5, row_bytes: 1, seats: 8 }]);
  const free = Buffer.from([0b1000_0000, 0b1010_0000, 0, 0b0010_0000, 0]).toString("base64");
  const answer = { as_of: "", max_age_seconds: 1, tiers: [{ tier: "second", price_minor: 5, available: 4, row_bytes: 1, free }] };
  const read = readAvailability(plan, answer);
  assert.deepEqual([...read.bySeat], [1, 0, 1, 1, 0, 1, 0, 0]);
  assert.deepEqual([...read.bySection], [3, 1]);
  assert.deepEqual([read.byTier[0], read.priceOf[0]], [4, 5]);
  assert.deepEqual(taken(plan, read, [0, 1, 7]), [1, 7]);
  const states = new Uint8Array(8).fill(UNKNOWN);
  const none = new Set<number>();
  assert.ok(writeStates(plan, states, read, { chosen: new Set([0]), lost: new Set([1]), offered: none }));
  assert.deepEqual([...states.slice(0, 5)], [CHOSEN, LOST, FREE, FREE, TAKEN]);
  // A tier that the journey does not sell is unknown, and nothing of it counts as taken.
  const other = readAvailability(plan, { ...answer, tiers: [] });
  assert.deepEqual(taken(plan, other, [0]), []);
  writeStates(plan, states, other, { chosen: none, lost: none, offered: none });
  assert.deepEqual([...new Set(states)], [UNKNOWN]);
});

test("the state of 60,000 seats is written in a moment, and only if it has changed", () => {
  const plan = planOf(sample("stadium-kestrel-park"));
  const states = new Uint8Array(plan.seats);
  const none = { chosen: new Set<number>(), lost: new Set<number>(), offered: new Set<number>() };
  assert.ok(writeStates(plan, states, undefined, none));
  assert.ok(!writeStates(plan, states, undefined, none));
});

/** The shortest way between two seats of a layout, looked for by its grid. */
function closest(plan: Plan, xy: Float32Array, grid: SeatGrid): number {
  let least = Infinity;
  for (let seat = 0; seat < plan.seats; seat += 1) {
    const [x, y] = [xy[seat * 2] ?? 0, xy[seat * 2 + 1] ?? 0];
    grid.within(x - 1, y - 1, x + 1, y + 1, (other) => {
      if (other !== seat) least = Math.min(least, Math.hypot((xy[other * 2] ?? 0) - x, (xy[other * 2 + 1] ?? 0) - y));
    });
  }
  return least;
}

for (const [name, kind] of [
  ["theatre-old-quay", "hall"], ["club-undertow", "hall"], ["stadium-kestrel-park", "stadium"], ["demo-stadium", "stadium"],
  ["g-train-g1307", "train"], ["demo-train", "train"], ["night-train-nightjar", "train"],
] as const) {
  test(`${name} is laid out as a ${kind}: no two seats overlap, each lies in its section`, () => {
    const plan = planOf(sample(name));
    const layout = layOut(plan, 1.5, WORDS);
    assert.equal(layout.kind, kind);
    const grid = new SeatGrid(layout.xy, layout.bounds, layout.pitch);
    assert.ok(plan.seats === 0 || closest(plan, layout.xy, grid) > 0.84, `${closest(plan, layout.xy, grid)}`);
    for (const section of plan.sections) {
      const outline = layout.sections[plan.sections.indexOf(section)]?.outline ?? [];
      for (const seat of [section.first, section.first + section.seats - 1]) {
        assert.ok(isWithin(outline, layout.xy[seat * 2] ?? 0, layout.xy[seat * 2 + 1] ?? 0), plan.names[seat]);
      }
    }
    assert.ok(layout.bounds.every(Number.isFinite));
    plan.tiers.forEach((tier, index) => assert.equal(layout.spots[index] !== undefined, tier.spots > 0));
  });
}

test("names say which ring or level a section is of", () => {
  assert.deepEqual(["119", "C13", "Box 4", "E", "7"].map(ringOf), ["1", "C", "Box ", "", "0"]);
  assert.deepEqual(["Circle left", "Circle right", "Box A", "Stalls", "Stalls side", "左"].map(levelOf), ["Circle", "Circle", "Box", "Stalls", "Stalls", "左"]);
});

test("coaches are in lines that suit the screen", () => {
  assert.deepEqual([coachesPerLine(16, 22, 10, 0.15), coachesPerLine(16, 22, 10, 0.5)], [1, 2]);
  assert.ok(coachesPerLine(16, 22, 10, 2) >= 3);
});

test("the grid finds the nearest seat within reach", () => {
  const xy = Float32Array.from([0, 0, 10, 0, 10, 10]);
  const grid = new SeatGrid(xy, [-1, -1, 11, 11], 1);
  assert.equal(grid.nearest(9.5, 0.2, 1), 1);
  assert.equal(grid.nearest(5, 5, 1), undefined);
  assert.equal(grid.nearest(-50, -50, 3), undefined);
});

const HALL: FileForMap = {
  tiers: [{ tier: "a", name: "A", price_minor: 1, sections: [{ section: "S", rows: [{ row: "1", seats: ["a", null, "b"] }, { row: "2", seats: ["c", "d", "e"] }] }] }],
};

test("a map document gives each seat its place", () => {
  const plan = planOf(HALL);
  const rows = [{ row: "2", from: [0, 10], to: [20, 10] }, { row: "1", seats: [[0, 0], null, [20, 0]] }];
  const layout = readMapDocument(plan, {
    width: 30, height: 30, outlines: [{ kind: "stage", label: "<b>", points: [[0, -9], [9, -9], [9, -5]] }],
    sections: [{ tier: "a", section: "S", rows }],
  });
  assert.deepEqual([...(layout?.xy ?? [])], [0, 0, 20, 0, 0, 10, 10, 10, 20, 10]);
  assert.equal(layout?.pitch, 10);
  assert.equal(layout?.shapes[0]?.label, "<b>");
  assert.ok(isWithin(hullOf(plan, layout?.xy ?? new Float32Array(), 0, 1), 10, 5));
});

test("a map document draws the areas of general admission, and those that it leaves out are below", () => {
  const spots = (tier: string): FileTier => ({ tier, name: tier, price_minor: 1, general_admission: 70 });
  const plan = planOf({ tiers: [...HALL.tiers, spots("floor"), spots("bar")] });
  const rows = [{ row: "1", from: [0, 0], to: [20, 0] }, { row: "2", from: [0, 10], to: [20, 10] }];
  const outline = [[0, 30], [20, 30], [20, 50]];
  const sections = [{ tier: "a", section: "S", rows }, { tier: "floor", outline }];
  const layout = readMapDocument(plan, { sections });
  assert.deepEqual(layout?.spots[1]?.outline, outline.flat());
  assert.ok((layout?.spots[2]?.outline[1] ?? 0) > 50);
  assert.equal(readMapDocument(plan, { sections: [...sections, { tier: "a", outline }] }), undefined);
  assert.equal(readMapDocument(plan, { sections: [...sections, { tier: "floor", outline: [] }] }), undefined);
});

test("a map document that does not fit is none", () => {
  const plan = planOf(HALL);
  const good = { row: "1", seats: [[0, 0], null, [2, 0]] };
  const second = { row: "2", from: [0, 1], to: [2, 1] };
  const documents: unknown[] = [
    null, 7, {}, { sections: {} }, { sections: [] },
    { sections: [{ tier: "a", section: "S", rows: [good] }] },
    { sections: [{ tier: "b", section: "S", rows: [good, second] }] },
    { sections: [{ tier: "a", section: "S", rows: [{ ...good, seats: [[0, 0], null] }, second] }] },
    { sections: [{ tier: "a", section: "S", rows: [{ ...good, seats: [[0, 0], [1, 0], null] }, second] }] },
    { sections: [{ tier: "a", section: "S", rows: [{ ...good, seats: [[0, 1e9], null, [1, 0]] }, second] }] },
    { sections: [{ tier: "a", section: "S", rows: [good, { row: "2", from: ["0", 1], to: [2, 1] }] }] },
    { sections: [{ tier: "a", section: "S", rows: [good, second], outline: [[0, 0]] }] },
    { sections: [{ tier: "a", section: "S", rows: [good, second] }], outlines: [{ kind: "script", points: [[0, 0], [1, 0], [1, 1]] }] },
    { sections: [{ tier: "a", section: "S", rows: [good, second] }, { tier: "a", section: "S", rows: [good, second] }] },
  ];
  for (const document of documents) assert.equal(readMapDocument(plan, document), undefined, JSON.stringify(document));
  // The page then makes a layout of its own.
  assert.equal(layOut(plan, 1, WORDS, documents[3]).kind, "hall");
});

test("a lost seat is replaced by the nearest free one, beside those that are kept", () => {
  const row = (label: string) => ({ row: label, seats: { first: 1, count: 8 } });
  const plan = planOf({ tiers: [{ tier: "a", name: "A", price_minor: 1, sections: [{ section: "S", rows: [row("1"), row("2")] }] }] });
  const layout = layOut(plan, 1, WORDS);
  const bits = (first: number, second: number): string => Buffer.from([first, second]).toString("base64");
  const read = (first: number, second: number) => readAvailability(plan, {
    as_of: "", max_age_seconds: 1, tiers: [{ tier: "a", price_minor: 1, available: 1, row_bytes: 1, free: bits(first, second) }],
  });
  const names = (seats: number[]): (string | undefined)[] => seats.map((seat) => plan.names[seat]);
  // Seats 3 and 4 were chosen, 4 is lost: 2 is beside 3, 5 is not, 4 of the second row is as near.
  assert.deepEqual(names(nearestFree(plan, layout.xy, 1, read(0b0110_1000, 0b0001_0000), [3], [2])), ["S-1-2"]);
  assert.deepEqual(nearestFree(plan, layout.xy, 1, read(0, 0), [3], [2]), []);
  assert.deepEqual(names(nearestTogether(plan, layout.xy, read(0b1011_0000, 0b0001_1100), 3, 3)), ["S-2-4", "S-2-5", "S-2-6"]);
  assert.deepEqual(nearestTogether(plan, layout.xy, read(0b1010_1010, 0), 3, 2), []);
  // Of a run of four, two at its end: in the middle they would leave one on either side.
  assert.deepEqual(names(nearestTogether(plan, layout.xy, read(0b0111_1000, 0), 2, 2)), ["S-1-2", "S-1-3"]);
  // Of a run of three, any two leave one.
  assert.deepEqual(names(nearestTogether(plan, layout.xy, read(0b0111_0000, 0), 3, 2)), ["S-1-3", "S-1-4"]);
});

test("a single seat that a choice by hand leaves is found, and what to take instead", () => {
  const row = (label: string) => ({ row: label, seats: { first: 1, count: 8, aisles_after: [6] } });
  const file = { tiers: [{ tier: "a", name: "A", price_minor: 1, sections: [{ section: "S", rows: [row("1"), row("2")] }] }] };
  const plan = planOf(file);
  const read = (first: number[]) => readAvailability(plan, {
    as_of: "", max_age_seconds: 1, tiers: [{ tier: "a", price_minor: 1, available: 1, row_bytes: 2, free: Buffer.from([...first, 0, 0]).toString("base64") }],
  });
  // Seats 1 to 6, the aisle, seats 7 and 8.
  const empty = read([0b1111_1101, 0b1000_0000]);
  assert.deepEqual(singlesLeft(plan, empty, [2, 3]), []);
  assert.deepEqual(singlesLeft(plan, empty, [1, 2]), [0], "at the end of the row");
  assert.deepEqual(singlesLeft(plan, empty, [3, 4]), [5], "at the aisle");
  assert.deepEqual(singlesLeft(plan, empty, [1, 3]), [0, 2], "and between two of them");
  assert.deepEqual(singlesLeft(plan, empty, [7]), [6]);
  assert.equal(insteadOfSingle(plan, empty, [1, 2], 0), 2);
  assert.equal(insteadOfSingle(plan, empty, [3, 4], 5), 3);
  // Three are free: two of them always leave one.
  const three = read([0b1110_0000, 0]);
  assert.deepEqual(singlesLeft(plan, three, [1, 2]), [0]);
  assert.equal(insteadOfSingle(plan, three, [1, 2], 0), undefined);
  assert.deepEqual(singlesLeft({ ...plan, isTrain: true }, empty, [1, 2]), []);
});

test("the camera keeps the map on the screen and the point under the pointer", () => {
  const camera = new Camera([0, 0, 100, 50], 1);
  camera.resize(200, 200);
  assert.equal(camera.scale, 2);
  camera.zoomAt(50, 100, 4);
  const [x] = camera.toMap(50, 100);
  assert.ok(Math.abs(x - 25) < 1e-9);
  camera.pan(1e6, 0);
  assert.equal(camera.toMap(0, 0)[0], 0);
  camera.zoomAt(0, 0, 1e-9);
  assert.ok(camera.isWhole());
});

test("a finger chooses no seat of less than 24 pixels, a mouse none of less than 10", () => {
  assert.deepEqual([6, 10, 23.9, 23.999999999, 24, 56].map((pixels) => choosesAt(pixels, "touch")), [false, false, false, true, true, true]);
  assert.deepEqual([6, 9.9, 10, 24].map((pixels) => choosesAt(pixels, "mouse")), [false, false, true, true]);
  assert.equal(choosesAt(20, "pen"), false);
});

test("a section that a finger has pressed comes so close that the next press chooses, around what was pressed", () => {
  // A section of 100 seats in a row on a phone: as a whole its seats would have 4 pixels.
  const camera = new Camera([0, 0, 200, 100], 1);
  camera.resize(390, 500);
  const view = camera.viewAround([50, 20, 150, 30], 60, 25, choosesFrom("touch"));
  camera.set(view);
  assert.ok(choosesAt(camera.scale, "touch"));
  const [x, y] = camera.toScreen(60, 25);
  assert.ok(x >= 0 && x <= 390 && y >= 0 && y <= 500, `${x}, ${y}`);
  // One that fits is in the middle, as large as it can be.
  const small = camera.viewAround([50, 20, 60, 30], 51, 21, choosesFrom("touch"));
  assert.deepEqual([small.x, small.y, small.scale > 30], [55, 25, true]);
});

test("the words of a seat stand beside it and within the map", () => {
  const [tip, map] = [{ width: 100, height: 40 }, { width: 400, height: 300 }];
  assert.deepEqual(placeOfTip(200, 150, 10, tip, map), { left: 150, top: 94 });
  assert.deepEqual(placeOfTip(5, 150, 10, tip, map), { left: 0, top: 94 });
  assert.deepEqual(placeOfTip(395, 20, 10, tip, map), { left: 300, top: 36 });
});

test("availability is asked for at its age, with jitter, and less often after failures", () => {
  assert.deepEqual([nextMs(1, 0), nextMs(2, 1), nextMs(Number.NaN, 0), nextMs(0, 0)], [1000, 3000, 1000, 1000]);
  assert.ok(afterFailureMs(1, null, 0.5) >= 2000);
  assert.ok(afterFailureMs(1, 9, 0.5) >= 9000);
  assert.ok(afterFailureMs(40, null, 1) <= 37_500);
});
