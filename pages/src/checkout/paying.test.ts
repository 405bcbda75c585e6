import assert from "node:assert/strict";
import { test } from "node:test";

import { modulePixels } from "./picture.ts";
import { passedMark, pollMs, providerAddress, waysOf } from "./paying.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const order = (state: "pending" | "paid" | "expired" | "refund_due", payBy = "2026-01-01T00:10:00Z") => ({ state, pay_by: payBy });

test("an order is asked for as long as it can change, and more often while a payment is expected", () => {
  assert.equal(pollMs(null, null, NOW), 3_000);
  assert.equal(pollMs(order("pending"), null, NOW), 5_000);
  assert.equal(pollMs(order("pending"), NOW - 1_000, NOW), 2_000);
  assert.equal(pollMs(order("pending"), NOW - 600_000, NOW), 5_000);
  assert.equal(pollMs(order("pending", "2025-12-31T23:59:59Z"), null, NOW), 2_000);
  assert.equal(pollMs(order("paid"), NOW, NOW), null);
  assert.equal(pollMs(order("refund_due"), null, NOW), 10_000);
  assert.equal(pollMs(order("expired"), null, NOW), 15_000);
});

test("only addresses of pages are gone to", () => {
  assert.equal(providerAddress("https://pay.example/x"), "https://pay.example/x");
  assert.equal(providerAddress("javascript:alert(1)"), null);
  assert.equal(providerAddress("data:text/html,x"), null);
  assert.equal(providerAddress(undefined), null);
  assert.equal(providerAddress("/x"), null);
});

test("forms of a provider's own are left out", () => {
  const payments = [{ provider: "stripe", method: "form" as const }, { provider: "stripe", method: "page" as const }, { provider: "wechat", method: "code" as const }];
  assert.deepEqual(waysOf({ payments }, "CNY"), [{ provider: "stripe", method: "page" }, { provider: "wechat", method: "code" }]);
  assert.deepEqual(waysOf({ payments }, "TWD"), [{ provider: "stripe", method: "page" }], "what takes one currency only is not offered for another");
});

test("a time that is left is announced once at five minutes and at one", () => {
  assert.equal(passedMark(301_000, 299_500), 300_000);
  assert.equal(passedMark(299_500, 298_000), undefined);
  assert.equal(passedMark(61_000, 60_000), 60_000);
  assert.equal(passedMark(400_000, -5), undefined);
});

test("a saved code is large enough for a scanner, its modules all of one size", () => {
  for (const modules of [33, 45, 185]) {
    const pixels = modulePixels(modules);
    assert.ok(Number.isInteger(pixels) && pixels * modules >= 720 && pixels * modules < 1_000, `${modules}: ${pixels}`);
  }
  assert.equal(modulePixels(2_000), 1);
});
