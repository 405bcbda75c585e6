import assert from "node:assert/strict";
import { test } from "node:test";

import { namesOf, type KnownSale } from "../order/sale.ts";
import type { Order } from "../order/words.ts";
import { keptAddress, orderOfAddress } from "../shared/kept-tickets.ts";
import { readKept, saleOf, shownOf } from "./kept.ts";
import { ticketsOf } from "./ticket.ts";

const ORDER: Order = {
  order: "42", sale: "line", state: "paid", currency: "EUR", amount_minor: 3_000, created_at: "2026-05-01T10:00:00Z", pay_by: "2026-05-01T10:10:00Z",
  changed_at: "2026-05-01T10:01:00Z", payments: [{ provider: "stripe", payment: "pi_1", amount_minor: 3_000, currency: "EUR", outcome: "accepted", decided_at: "2026-05-01T10:01:00Z" }],
  lines: [{ tier: "second", from: "A", to: "B", price_minor: 1_000, tickets: [{ seat: "1A", attendee: "Ann" }, { seat: "1B", refund: 1 }] }],
};

test("what is kept of an order shows the same tickets, and nothing of money", () => {
  const kept = shownOf(ORDER);
  assert.deepEqual(ticketsOf(kept, null), ticketsOf(ORDER, null));
  assert.doesNotMatch(JSON.stringify(kept), /minor|EUR|stripe|pi_1/);
});

test("of a sale the names are kept, its times, and where the order's own seats are", () => {
  const event = { starts_at: "2026-11-21T19:00:00.000Z", time_zone: "Europe/Vienna", venue: { name: "Lakeside" } };
  const stop = { stop: "x", name: "X", departs: "08:05", time_zone: "Europe/Vienna" };
  const rows = [{ row: "A", seats: ["S-A-1", "S-A-2"] }];
  const sale = {
    sale: "line", title: "Line", file: {
      tiers: [{ tier: "a", name: "A", price_minor: 7, sections: [{ section: "S", rows }] }], merchant: { merchant: "wallet", secret: 1 }, limit_per_buyer: 4, event,
    },
  };
  const kept = saleOf(sale as KnownSale, ["S-A-2", "standing 1", "__proto__"]);
  assert.deepEqual(kept, {
    title: "Line", file: { tiers: [{ tier: "a", name: "A" }], merchant: { merchant: "wallet" }, event }, places: [["S-A-2", { section: "S", row: "A", seat: "2" }]],
  });
  const again = namesOf("line", JSON.parse(JSON.stringify(kept)) as KnownSale);
  for (const seat of ["S-A-2", "standing 1", "__proto__"]) assert.equal(again.seat(seat), namesOf("line", sale as KnownSale).seat(seat), seat);
  assert.equal(again.place("S-A-1"), null);
  assert.deepEqual(saleOf({ title: "T", file: { tiers: [], stops: [{ ...stop, arrives: null }], runs_on: "2026-11-21", merchant: null } }, []), { title: "T", file: { tiers: [], stops: [stop], runs_on: "2026-11-21" }, places: [] });
});

test("what was kept before the last signing out, or in another form, is not there", () => {
  const kept = { format: 1, order: shownOf(ORDER), codes: [], sale: null, asOfMs: 1, since: "mark" };
  assert.deepEqual(readKept(kept, "mark"), kept);
  for (const [value, since] of [[kept, ""], [{ ...kept, format: 2 }, "mark"], [{ ...kept, codes: null }, "mark"], [{ ...kept, order: {} }, "mark"], [null, "mark"], ["x", "mark"]] as const) {
    assert.equal(readKept(value, since), null);
  }
});

test("an address says whose the tickets are, whatever the buyer is called", () => {
  for (const buyer of ["alice", "", "a/b", "../..", "ü 票|x?y#z", "%2F"]) {
    const address = keptAddress(buyer, "42");
    assert.equal(orderOfAddress(address, buyer), "42", buyer);
    assert.equal(orderOfAddress(`https://tickets.example${address}`, null), "42", buyer);
    assert.equal(orderOfAddress(address, "bob"), null, buyer);
  }
});
