import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

import { exponentOf } from "onsale-client";

import { minorOf, typedOf } from "../desk/refund.ts";
import { money } from "./format.ts";

const plain = (text: string) => text.replace(/[^\d.,]/g, "");

test("an amount is divided by what ISO 4217 says, and written as people write it", () => {
  for (const [minor, currency, written] of [
    [129_900, "HUF", "1,299"], [129_950, "HUF", "1,299.50"], [35_000_000, "IDR", "350,000"], [12_000_000, "COP", "120,000"],
    [150_000, "PKR", "1,500"], [500_000, "MGA", "5,000"], [5_000_000, "IQD", "5,000"], [1_500, "JPY", "1,500"],
    [117_000, "CNY", "1,170.00"], [1_234, "KWD", "1.234"], [12_345, "EUR", "123.45"], [-500, "EUR", "5.00"],
  ] as const) {
    assert.equal(plain(money(minor, currency)), written, `${minor} ${currency}`);
  }
});

/** The amount that a text says beside its symbol, which may have a point of its own: 1299.5 of "HUF 1,299.50". */
const amountIn = (text: string) => Number((/\d[\d,.]*/.exec(text)?.[0] ?? "").replaceAll(",", ""));

/** Checks that pages show an amount as what a provider charges for it, and that the desk reads it as the same. */
function isShownAsCharged(minor: number, currency: string): void {
  const charged = minor / 10 ** exponentOf(currency);
  assert.equal(amountIn(money(minor, currency)), charged, `${minor} ${currency} are shown as ${money(minor, currency)}`);
  assert.equal(minorOf(typedOf(minor, currency), currency), minor, `${typedOf(minor, currency)} ${currency} are typed`);
}

test("every currency is shown and typed as it is charged, however many digits Intl knows of it", () => {
  const digits = (currency: string) => new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits ?? 2;
  const all = Intl.supportedValuesOf("currency");
  // Without one of these the test shows nothing.
  assert.ok(all.some((currency) => digits(currency) !== exponentOf(currency)), "this Intl has the digits of ISO 4217");
  for (const currency of all) {
    for (const minor of [0, 1, 7, 99, 100, 1_000, 129_900, 129_950, 35_000_000]) isShownAsCharged(minor, currency);
  }
});

test("the case from the field shows the price of its ticket", (t) => {
  // Beside the repository: the tests run in the folder of the pages.
  const folder = "../../shared/data/field-cases/price-shown-hundredfold";
  if (!existsSync(folder)) {
    console.error(`skipped: ${folder}: not there`);
    t.skip("not there");
    return;
  }
  const { currency, tiers } = JSON.parse(readFileSync(`${folder}/huf.json`, "utf8")) as { currency: string; tiers: { price_minor: number }[] };
  assert.deepEqual(tiers.map(({ price_minor }) => plain(money(price_minor, currency))), ["1,299"]);
  for (const { price_minor } of tiers) isShownAsCharged(price_minor, currency);
});
