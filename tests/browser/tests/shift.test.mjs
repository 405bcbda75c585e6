/** Nothing moves under the eyes, or the finger, of whoever is on a slow network. */
import assert from "node:assert/strict";
import { fixture } from "../lib/fixture.mjs";
import { hall } from "../lib/sales.mjs";

const { it, test } = fixture();

/** The most that may move, as Core Web Vitals count it: "good" is 0.1. */
const MOST = 0.05;
/** A slow phone network: 400 kbit/s, and 400 ms for each answer. */
const SLOW = { offline: false, latency: 400, downloadThroughput: 50_000, uploadThroughput: 50_000 };

/** Counts what moves from the first paint on, and what it was. */
const OBSERVED = `{
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput, sources, startTime } of list.getEntries()) {
      if (hadRecentInput) continue;
      const what = sources.map(({ node, previousRect, currentRect }) => (node?.outerHTML ?? node?.textContent ?? "gone").slice(0, 60) + " from " + previousRect.top + " to " + currentRect.top);
      window.shifts.push({ value, at: Math.round(startTime), what });
    }
  }).observe({ type: "layout-shift", buffered: true });
}`;

for (const [language, window] of [["en", {}], ["zh", { width: 390, height: 780 }]]) {
  test(`pages stay where they are while they load over a slow network (${language})`, async (t) => {
    const name = `steady-${language}`;
    const files = ["steady", "steadier", "steadiest"].map((title) => hall(title, { title: `Evening of ${title}, with a title that does not fit on one line of a phone`, wallet: true, refunds: { until: "2099-01-01T00:00:00.000Z", fee_percent: 5 } }));
    const topUps = hall("filled", { merchant: { merchant: "wallet" }, tiers: [{ tier: "hundred", name: "100 CNY", price_minor: 10_000, general_admission: 50 }] });
    await it.engine.publish(topUps);
    for (const file of files) await it.engine.publish(file);
    const [first, second, third] = files.map(({ sale }) => sale);
    const { order: paid } = await it.engine.paidOrder(first, name, { tier: "stalls", best: { count: 2 } });
    await it.engine.paidOrder(third, name, { tier: "stalls", best: { count: 3 } });
    const { order: pending } = await it.engine.order(second, name, { tier: "balcony", best: { count: 2 } });
    await it.engine.paidOrder(topUps.sale, name, { tier: "hundred", best: { count: 5 } });
    await it.engine.until("/wallets", ({ wallets }) => wallets?.[0]?.balance_minor > 0, { as: name });
    const person = await it.person(t, { language, name, ...window });
    await person.haveSession();
    await person.before(OBSERVED);
    await person.browser.sendDevToolsCommand("Network.enable", {});
    const pages = {
      "/": "main .sale", [`/s/${first}`]: "main table", "/my/orders": ".allowances", [`/my/tickets/${paid}`]: ".ticket .qr", [`/checkout/${pending}`]: ".from-wallet button",
    };
    const moved = [];
    for (const [path, ready] of Object.entries(pages)) {
      await person.browser.sendDevToolsCommand("Network.clearBrowserCache", {});
      await person.browser.sendDevToolsCommand("Network.emulateNetworkConditions", SLOW);
      await person.go(path);
      await person.wait(() => person.browser.executeScript((css) => document.querySelector(css) !== null, ready), `${ready} is not shown`);
      // What comes after the first of it: names, wallets, what is left.
      await person.wait(() => person.browser.executeScript((ms) => performance.now() - Math.max(...performance.getEntriesByType("resource").map(({ responseEnd }) => responseEnd)) > ms, 3 * SLOW.latency), "requests go on");
      const shifts = await person.browser.executeScript(() => globalThis.shifts);
      const sum = shifts.reduce((all, { value }) => all + value, 0);
      t.diagnostic(`${path}: ${sum.toFixed(3)}`);
      if (sum > MOST) moved.push(`${path}: ${sum.toFixed(3)} ${JSON.stringify(shifts, null, 1)}`);
    }
    assert.deepEqual(moved, []);
  });
}
