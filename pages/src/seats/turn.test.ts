import assert from "node:assert/strict";
import test from "node:test";

import type { OnsaleProblem } from "../shared/api.ts";
import { type Known, isFinal, keepVisit, keptVisit, pauseMs, turnOf } from "./turn.ts";

const DUE: Known = { visit: null, isDue: true, dueAtMs: 1_000, showUpSeconds: 180, refusedBy: null };

test("nothing is said of a place that is drawn and not due", () => {
  assert.deepEqual(turnOf({ ...DUE, isDue: false, dueAtMs: undefined }, 5_000), { kind: "none" });
});

test("a place that nobody uses runs out, and a visit has its own end and a warning two minutes before it", () => {
  assert.deepEqual(turnOf(DUE, 5_000), { kind: "unused", endsAtMs: 181_000 });
  assert.deepEqual(turnOf({ ...DUE, dueAtMs: undefined }, 5_000), { kind: "unused", endsAtMs: null });
  const visit = { token: "t1", endsAtMs: 600_000 };
  for (const [nowMs, isEnding] of [[0, false], [479_999, false], [480_000, true], [600_001, true]] as const) {
    assert.deepEqual(turnOf({ ...DUE, isDue: false, visit }, nowMs), { kind: "visit", endsAtMs: 600_000, isEnding });
  }
  for (const slug of ["visit-over", "place-run-out"] as const) {
    assert.deepEqual(turnOf({ ...DUE, visit, refusedBy: slug }, 0), { kind: "over", slug });
  }
  assert.deepEqual(turnOf({ ...DUE, visit, refusedBy: "sold-out" }, 0), { kind: "none" });
});

test("a visit is kept for its membership alone", () => {
  keepVisit("s", { token: "t1", endsAtMs: 600_000 });
  assert.deepEqual(keptVisit("s", "t1"), { token: "t1", endsAtMs: 600_000 });
  assert.equal(keptVisit("s", "t2"), null);
  assert.equal(keptVisit("other", "t1"), null);
});

test("what is refused for now is asked again, ever later, and as late as the answer says", () => {
  const refused = (slug: string, retryAfterSeconds: number | null = null) => ({ slug, retryAfterSeconds }) as OnsaleProblem;
  for (const slug of ["place-run-out", "visit-over", "place-invalid", "sold-out", "sale-closed"]) assert.equal(isFinal(refused(slug)), true, slug);
  for (const slug of ["room-paused", "no-answer", "too-many-requests", "place-not-due", "not-authenticated"]) assert.equal(isFinal(refused(slug)), false, slug);
  assert.deepEqual([1, 2, 3, 9].map((failures) => pauseMs(failures, refused("no-answer"))), [2_000, 4_000, 8_000, 30_000]);
  assert.equal(pauseMs(1, refused("room-paused", 60)), 60_000);
});
