import assert from "node:assert/strict";
import test from "node:test";

import type { OnsaleProblem } from "../shared/api.ts";
import type { KeptPlace } from "../shared/place.ts";
import { keepVisit, keptVisit, overBy, turnOf } from "./turn.ts";

const PLACE: KeptPlace = { sale: "s", token: "t1", group: "all", index: 3, window: "first", nonce: "00", place: 7, joinedAtMs: 0, dueAtMs: 1_000 };

test("a place that nobody uses runs out, and a visit has its own end and a warning two minutes before it", () => {
  assert.deepEqual(turnOf(PLACE, null, 180, null, 5_000), { kind: "unused", endsAtMs: 181_000 });
  const { dueAtMs: _dueAtMs, ...unseen } = PLACE;
  assert.deepEqual(turnOf(unseen, null, 180, null, 5_000), { kind: "unused", endsAtMs: null });
  const visit = { token: "t1", endsAtMs: 600_000 };
  for (const [nowMs, isEnding] of [[0, false], [479_999, false], [480_000, true], [600_001, true]] as const) {
    assert.deepEqual(turnOf(PLACE, visit, 180, null, nowMs), { kind: "visit", endsAtMs: 600_000, isEnding });
  }
  assert.deepEqual(turnOf(PLACE, visit, 180, { kind: "over", slug: "visit-over" }, 0), { kind: "over", slug: "visit-over" });
});

test("a visit is kept for its membership alone", () => {
  keepVisit("s", { token: "t1", endsAtMs: 600_000 });
  assert.deepEqual(keptVisit("s", PLACE), { token: "t1", endsAtMs: 600_000 });
  assert.equal(keptVisit("s", { ...PLACE, token: "t2" }), null);
  assert.equal(keptVisit("other", PLACE), null);
});

test("what is refused for good ends the turn, and nothing else does", () => {
  const by = (slug: string) => overBy({ slug } as OnsaleProblem);
  assert.deepEqual(by("place-run-out"), { kind: "over", slug: "place-run-out" });
  assert.deepEqual(by("visit-over"), { kind: "over", slug: "visit-over" });
  for (const slug of ["room-paused", "no-answer", "too-many-requests", "place-not-due"]) assert.equal(by(slug), null);
});
