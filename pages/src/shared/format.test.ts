import assert from "node:assert/strict";
import { test } from "node:test";

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
