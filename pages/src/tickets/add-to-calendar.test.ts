import assert from "node:assert/strict";
import { test } from "node:test";

import { namesOf, type KnownSale } from "../order/sale.ts";
import { calendarEvents } from "./add-to-calendar.tsx";
import { calendarFile } from "./calendar.ts";

const AT = { origin: "https://tickets.example", nowMs: Date.parse("2026-11-01T08:00:00Z") };
const line = (seats: readonly string[], ends: { from?: string; to?: string } = {}) => ({ tier: "a", ...ends, tickets: seats.map((seat) => ({ seat })) });

test("an event is kept with its place, its doors and the seats", () => {
  const sale: KnownSale = {
    title: "Evening", event: {
      starts_at: "2026-11-21T19:00:00Z", doors_at: "2026-11-21T17:30:00Z", ends_at: "2026-11-21T22:00:00Z", time_zone: "Europe/Vienna", venue: { name: "Lakeside", city: "Vienna" },
    }, file: { tiers: [] },
  };
  const order = { order: "42", lines: [{ ...line(["A-1"]), tickets: [{ seat: "A-1" }, { seat: "A-2", refund: 1 }] }] };
  assert.deepEqual(calendarEvents(order, namesOf("s", sale), "Am Ufer 1", AT), [{
    uid: "order-42@tickets.example", title: "Evening", starts_at: "2026-11-21T19:00:00Z", ends_at: "2026-11-21T22:00:00Z", location: "Lakeside, Vienna, Am Ufer 1",
    description: "Doors 18:30\nA-1", url: "https://tickets.example/my/tickets/42?lang=en", stamp: "2026-11-01T08:00:00.000Z",
  }]);
  // Many addresses begin with the venue: it is not said twice.
  assert.equal(calendarEvents(order, namesOf("s", sale), "Lakeside, Am Ufer 1, Vienna", AT)[0]?.location, "Lakeside, Am Ufer 1, Vienna");
  assert.equal(calendarEvents(order, namesOf("s", sale), null, AT)[0]?.location, "Lakeside, Vienna");
  for (const event of [null, {}, { venue: { name: "Lakeside" } }]) assert.deepEqual(calendarEvents(order, namesOf("s", { ...sale, event }), null, AT), []);
  assert.deepEqual(calendarEvents(order, namesOf("s", null), null, AT), []);
});

test("a journey is kept by the clocks of its stops, each once", () => {
  const sale: KnownSale = {
    title: "Nightjar", file: {
      tiers: [], runs_on: "2026-10-24", event: { time_zone: "Europe/Vienna" },
      stops: [{ stop: "A", name: "Wien", departs: "20:40" }, { stop: "B", name: "London", arrives: "33:05", time_zone: "Europe/London" }],
    },
  };
  const order = { order: "7", lines: [line(["01-1A"], { from: "A", to: "B" }), line(["02-1A"], { from: "A", to: "B" })] };
  const [event, ...more] = calendarEvents(order, namesOf("s", sale), null, AT);
  assert.deepEqual(more, []);
  assert.deepEqual([event?.starts_at, event?.ends_at, event?.location, event?.uid], ["2026-10-24T18:40:00.000Z", "2026-10-25T09:05:00.000Z", "Wien", "order-7-A-B@tickets.example"]);
  assert.match(event?.description ?? "", /^Wien Saturday 24 October 2026, 20:40 \(Vienna time, CEST\) → London Sunday 25 October 2026, 09:05 \(London time, GMT\)\n01-1A\n02-1A$/);
  assert.ok(calendarFile(event!)?.includes("DTSTART:20261024T184000Z"));
  assert.deepEqual(calendarEvents(order, namesOf("s", { ...sale, file: { ...sale.file, runs_on: null } }), null, AT), [], "a train that is on no day");
});
