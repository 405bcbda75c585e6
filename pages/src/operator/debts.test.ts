import assert from "node:assert/strict";
import { test } from "node:test";

import { debtorOf, lookForDebts, type Debt } from "./debts.ts";

const debt = (account: string, balance_minor: number): Debt => ({ account, currency: "EUR", in_minor: 0, out_minor: -balance_minor, balance_minor, posted_minor: 0 });

test("debts are looked for page by page, each once, as far as is asked or to the end", async () => {
  const pages: Record<string, { accounts: Debt[]; next?: string }> = {
    first: { accounts: [], next: "a" },
    a: { accounts: [debt("merchant:opera:tosca", -900)], next: "b" },
    b: { accounts: [debt("wallet:ann", -500)], next: "c" },
    c: { accounts: [debt("wallet:ann", -500), debt("wallet:bo", -1)] },
  };
  const asked: string[] = [];
  const page = async (cursor: string | null) => {
    asked.push(cursor ?? "first");
    return pages[cursor ?? "first"] ?? assert.fail();
  };
  const first = await lookForDebts(null, 1, page);
  assert.deepEqual(first, { debts: [], next: "a" });
  const more = await lookForDebts(first, 2, page);
  assert.deepEqual([more.debts.map(({ account }) => account), more.next], [["merchant:opera:tosca", "wallet:ann"], "c"]);
  const all = await lookForDebts(more, 20, page);
  assert.deepEqual([all.debts.map(({ account }) => account), all.next], [["merchant:opera:tosca", "wallet:ann", "wallet:bo"], null]);
  assert.deepEqual(asked, ["first", "a", "b", "c"]);
});

test("who owes is a merchant of a sale, or a buyer of any name", () => {
  assert.deepEqual(debtorOf("merchant:opera:tosca-2026"), { merchant: "opera", sale: "tosca-2026" });
  assert.deepEqual(debtorOf("wallet:auth0|7:x"), { buyer: "auth0|7:x" });
  assert.equal(debtorOf("fees"), null);
  assert.equal(debtorOf("merchant:opera"), null);
});
