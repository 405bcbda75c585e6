import assert from "node:assert/strict";
import { test } from "node:test";
import qrcode from "qrcode-generator";

import { ticketLook, ticketWord } from "../order/ticket-state.ts";
import type { Order } from "../order/words.ts";
import { pictureOf } from "./qr.tsx";
import { ticketsOf, voidKey } from "./ticket.ts";

const ORDER: Order = {
  order: "42", sale: "line", state: "paid", currency: "EUR", amount_minor: 3_000, created_at: "2026-05-01T10:00:00Z", pay_by: "2026-05-01T10:10:00Z",
  changed_at: "2026-05-01T10:01:00Z",
  lines: [{ tier: "second", from: "A", to: "B", price_minor: 1_000, tickets: [{ seat: "1A", attendee: "Ann" }, { seat: "1B", refund: 1 }, { seat: "1C" }, { seat: "1D" }] }],
};

test("tickets without codes are shown without codes", () => {
  assert.deepEqual(ticketsOf(ORDER, null).map(({ seat, state, code }) => [seat, state, code]), [["1A", "valid", null], ["1B", "revoked", null], ["1C", "valid", null], ["1D", "valid", null]]);
});

test("what the order says is void is void, and so is what the list of codes says; a void ticket has no code", () => {
  const codes = [
    { number: 1, state: "valid", issue: 1, code: "c1" }, { number: 2, state: "valid", issue: 1, code: "c2" },
    { number: 3, state: "revoked", issue: 1, code: "c3" }, { number: 4, state: "checked-in", issue: 2, code: "c4", checked_in_at: "2026-05-02T10:00:00Z" },
  ] as const;
  const shown = ticketsOf(ORDER, codes);
  assert.deepEqual(shown.map(({ state, code }) => [state, code]), [["valid", "c1"], ["revoked", null], ["revoked", null], ["checked-in", "c4"]]);
  assert.deepEqual(shown.map(({ isReissued, checkedInAt }) => [isReissued, checkedInAt]), [[false, null], [false, null], [false, null], [true, "2026-05-02T10:00:00Z"]]);
  assert.equal(ticketsOf(ORDER, [{ number: 1, state: "unheard-of" as never, issue: 1, code: "c" }])[0]?.code, null, "a state that nobody knows lets nobody in");
});

test("a void ticket says why, as far as that is known", () => {
  const reasons = new Map([[1, "sale_cancelled"], [2, "weather" as never]] as const);
  assert.equal(ticketsOf(ORDER, null)[1]?.refund, 1);
  assert.deepEqual([1, 2, 3, null].map((refund) => voidKey(refund, reasons)), ["void-text.sale_cancelled", "void-text", "void-text", "void-text"]);
});

test("every state has its own word and look", () => {
  const states = ["valid", "revoked", "checked-in"] as const;
  assert.equal(new Set(states.map(ticketWord)).size, 3);
  assert.equal(new Set(states.map(ticketLook)).size, 3);
});

test("the picture has exactly the dark modules, with four white ones around", () => {
  for (const code of ["HTTPS://X/ABC-123", "eyJhIjoi…", "x".repeat(300)]) {
    const { width, path } = pictureOf(code);
    const expected = qrcode(0, "M");
    expected.addData(code, /^[A-Z0-9:/-]+$/.test(code) ? "Alphanumeric" : "Byte");
    expected.make();
    const modules = expected.getModuleCount();
    assert.equal(width, modules + 8);
    const dark = new Set<string>();
    for (const [, x, y, length] of path.matchAll(/M(\d+) (\d+)h(\d+)v1h-\d+z/g)) {
      for (let at = 0; at < Number(length); at += 1) dark.add(`${Number(x) + at} ${y}`);
    }
    for (let row = 0; row < modules; row += 1) {
      for (let column = 0; column < modules; column += 1) {
        assert.equal(dark.delete(`${column + 4} ${row + 4}`), expected.isDark(row, column));
      }
    }
    assert.equal(dark.size, 0);
  }
});
