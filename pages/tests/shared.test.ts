import assert from "node:assert/strict";
import { test } from "node:test";

import { ServerClock } from "../src/shared/clock.ts";
import { countdown, duration, money } from "../src/shared/format.ts";
import { backoffMs } from "../src/shared/hooks.ts";
import { chosenLanguage, href } from "../src/shared/language.ts";
import { parametersOf } from "../src/shared/route.ts";
import { ownPath } from "../src/shared/sign-in.ts";
import { getJson, setJson, storeOf } from "../src/shared/storage.ts";
import { filled, texts } from "../src/shared/text.ts";

test("the language is the address's, else the browser's, else English", () => {
  assert.equal(chosenLanguage("?lang=zh", ["en-US"]), "zh");
  assert.equal(chosenLanguage("?lang=fr", ["zh-TW", "en"]), "zh");
  assert.equal(chosenLanguage("", ["de-DE", "en-US", "zh-CN"]), "en");
  assert.equal(chosenLanguage("", ["de-DE"]), "en");
  assert.equal(href("/s/x?lang=zh&a=1#m", "en"), "/s/x?lang=en&a=1#m");
});

test("money has the digits of its currency", () => {
  assert.equal(money(117000, "EUR"), "€1,170.00");
  assert.equal(money(1500, "JPY"), "JP¥1,500");
  assert.equal(money(1234, "KWD").replace(/\s/, " "), "KWD 1.234");
});

test("what is left is shown in digits and in words", () => {
  assert.equal(countdown(3_723_000), "1:02:03");
  assert.equal(countdown(3 * 86_400_000 + 5), "3 days");
  assert.equal(countdown(47 * 3_600_000), "47:00:00");
  assert.equal(countdown(-5), "00:00");
  assert.equal(countdown(59_001), "01:00");
  assert.equal(duration(90_061_000), "1 day 1 hour");
  assert.equal(duration(3_600_000), "1 hour");
  assert.equal(duration(61_000), "1 minute 1 second");
  assert.equal(duration(400), "0 seconds");
});

test("the server's clock is found behind a local one that is wrong", () => {
  let local = 10_000_000;
  const clock = new ServerClock(() => local);
  const hour = 3_600_000;
  assert.ok(!clock.isKnown());
  local += 100;
  clock.observe(local + hour, local + hour + 1_000, local - 100);
  assert.ok(Math.abs(clock.nowMs() - (local + hour + 550)) <= 1);
  // A slow answer does not spoil it, a better one makes it exact.
  clock.observe(local + hour, local + hour + 1_000, local - 9_000);
  assert.ok(Math.abs(clock.nowMs() - (local + hour + 550)) <= 1);
  clock.observe(local + hour, local + hour, local - 20);
  assert.ok(Math.abs(clock.nowMs() - (local + hour)) <= 10);
  // The local clock is set right.
  local += hour;
  clock.observe(local, local + 1_000, local - 100);
  assert.ok(Math.abs(clock.nowMs() - (local + 550)) <= 1);
  const headers = new Headers({ Date: new Date(Math.floor(local / 1000) * 1000).toUTCString(), Age: "1" });
  clock.observeResponse(new Response("", { headers }), local);
  assert.ok(Math.abs(clock.nowMs() - local) < 3_000);
});

test("parameters are whole segments", () => {
  assert.deepEqual(parametersOf("/s/{sale}/seats", "/s/a-1/seats"), { sale: "a-1" });
  assert.equal(parametersOf("/s/{sale}", "/s/"), null);
  assert.equal(parametersOf("/s/{sale}", "/s/a/room"), null);
  assert.deepEqual(parametersOf("/s/{sale}", "/s/%"), { sale: "%" });
});

test("signing in returns to a path of this site only", () => {
  const origin = "https://tickets.example";
  for (const own of ["/", "/s/a?lang=zh#b", "/s/a?to=//evil.example", "/my/orders#//evil.example", "/s/%E5%A4%9C", "/s/a//b"]) {
    assert.equal(ownPath(own, origin), own);
  }
  const foreign = [
    "https://evil.example/", "//evil.example/x", "///evil.example", "javascript:alert(1)", "data:text/html,x", "https://tickets.example@evil.example/",
    "\\\\evil.example", "/\\evil.example", "\\/evil.example", "/\t/evil.example", "\n//evil.example",
    // Paths of this site whose segments leave two slashes in front: an address again wherever they are read once more.
    "/.//evil.example/x", "/./\\evil.example", "/.\\/evil.example", "/a/..//evil.example", "/a/b/../../\\evil.example", "/%2e//evil.example", "/%2E%2e/\\evil.example",
    "/.///evil.example", "https://tickets.example//evil.example", "https://tickets.example/.//evil.example",
    // And what becomes such a path where somebody decodes it.
    "/%2fevil.example", "/%2F%2Fevil.example", "/%5cevil.example", "/%5C/evil.example", "/%2e%2f%2fevil.example", "/a/%2e%2e%2f/evil.example", "/%252fevil.example", "/%25252e%2f/evil.example",
    "/%09/evil.example", "/%", "blob:https://tickets.example/x",
  ];
  for (const path of foreign) {
    assert.equal(ownPath(path, origin), "/", JSON.stringify(path));
  }
});

test("texts have values and plurals, and nothing in a value is a placeholder", () => {
  assert.equal(filled("{a} of {b}", { a: "{b}", b: 1_000 }), "{b} of 1,000");
  const { t, tn } = texts({ "left.one": "{count} seat", "left.other": "{count} seats" }, { "left.one": "", "left.other": "" }, "en");
  assert.equal(tn("left", 1), "1 seat");
  assert.equal(tn("left", 1_200), "1,200 seats");
  assert.equal(t("brand"), "Onsale");
});

test("failures are followed by longer and longer pauses", () => {
  assert.equal(backoffMs(1, null, 0.5), 2_000);
  assert.equal(backoffMs(1, 9, 0.5), 9_000);
  assert.ok(backoffMs(99, null, 1) <= 75_000);
});

test("what a browser does not keep is kept as long as the page", () => {
  const values = new Map<string, string>();
  let isFull = false;
  const storage = {
    getItem: (key: string) => values.get(key) ?? null,
    setItem: (key: string, value: string) => {
      if (isFull) throw new DOMException("full", "QuotaExceededError");
      values.set(key, value);
    },
    removeItem: (key: string) => values.delete(key),
  } as unknown as Storage;
  const store = storeOf(() => storage, "test");
  assert.equal(store.set("a", "1"), true);
  isFull = true;
  setJson(store, "a", { b: 2 });
  assert.equal(store.set("c", "1"), false);
  assert.deepEqual(getJson(store, "a"), { b: 2 });
  isFull = false;
  assert.equal(store.set("a", "x{"), true);
  assert.equal(getJson(store, "a"), null);
  store.remove("a");
  assert.equal(store.get("a"), null);
  const forbidden = storeOf(() => {
    throw new DOMException("no", "SecurityError");
  }, "forbidden");
  assert.equal(forbidden.get("a"), null);
  assert.equal(forbidden.set("a", "1"), false);
  assert.equal(forbidden.get("a"), "1");
});
