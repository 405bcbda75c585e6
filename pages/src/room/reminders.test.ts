import assert from "node:assert/strict";
import { test } from "node:test";

import { turnAtMs, turnFile } from "./reminders.ts";
import type { RoomDocument, Standing } from "./standing.ts";

const OPENS = Date.parse("2026-06-01T08:00:00.000Z");
const OF = { opens_at: new Date(OPENS).toISOString() } as RoomDocument;
const waiting = (fromMs: number | null): Standing =>
  ({ kind: "waiting", place: 7, ahead: 3, odds: "likely", wait: fromMs === null ? null : { fromMs, toMs: 2 * fromMs } });

test("a calendar has the opening until places are served, then the earliest time that is expected", () => {
  for (const standing of [{ kind: "joined" }, { kind: "drawing" }, { kind: "later" }, { kind: "drawn", place: 7 }] as const) {
    assert.equal(turnAtMs(OF, standing, OPENS - 1), OPENS, standing.kind);
    assert.equal(turnAtMs(OF, standing, OPENS), null, `${standing.kind} after the opening`);
  }
  assert.equal(turnAtMs(OF, waiting(90_000), OPENS + 1_000), OPENS + 91_000);
  assert.equal(turnAtMs(OF, waiting(null), OPENS + 1_000), null, "nobody knows");
  assert.equal(turnAtMs(OF, waiting(0), OPENS + 1_000), null, "it comes now");
  for (const kind of ["due", "passed"] as const) assert.equal(turnAtMs(OF, { kind, place: 7 }, OPENS - 1), null, kind);
});

test("the file leads to the room, rings before the turn, and a later one replaces it", () => {
  const file = (atMs: number) => turnFile({ title: "Evening; with, all", room: "https://tickets.example/s/evening/room?lang=en", atMs, nowMs: OPENS }) ?? "";
  const lines = file(OPENS + 3_600_000).replace(/\r\n /g, "").split("\r\n");
  for (const line of [
    "UID:turn-evening@tickets.example", "DTSTAMP:20260601T080000Z", "DTSTART:20260601T090000Z", "SUMMARY:Evening\\; with\\, all: your turn in the waiting room",
    "URL:https://tickets.example/s/evening/room?lang=en", "TRIGGER:-PT5M", "ACTION:DISPLAY",
  ]) {
    assert.ok(lines.includes(line), `${line} in ${lines.join("\n")}`);
  }
  // An alarm stands in its event.
  assert.deepEqual(lines.slice(-6).filter((line) => /^(BEGIN|END)/.test(line)), ["END:VALARM", "END:VEVENT", "END:VCALENDAR"]);
  assert.ok(lines.indexOf("BEGIN:VALARM") > lines.indexOf("BEGIN:VEVENT"));
  const uid = (text: string) => /^UID:.*$/m.exec(text)?.[0];
  assert.equal(uid(file(OPENS + 1)), uid(file(OPENS + 2)));
});
