/** Operators: a sale live, its controls, publishing, the order desk; and buyers who try the same. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fixture } from "../lib/fixture.mjs";
import { texts } from "../lib/person.mjs";
import { hall, roomHall, SCRIPT } from "../lib/sales.mjs";
import { setSession } from "../lib/pages.mjs";
import { like, saying } from "../lib/steps.mjs";

const { it, test } = fixture();

/** Somebody who is signed in as an operator, at a path. */
async function operatorAt(t, path, options) {
  const operator = await it.person(t, { name: "olga", ...options });
  await operator.haveSession("operators");
  await operator.go(path);
  return operator;
}

for (const [language, window] of [["en", {}], ["zh", { width: 390, height: 780, dark: true }]]) {
  test(`an operator watches a sale, pauses it and writes to everybody (${language})`, async (t) => {
    const [words, room] = [texts("operator", language), texts("room", language)];
    const file = roomHall(`run-${language}`, 4);
    await it.engine.publish(file);
    const operator = await operatorAt(t, "/operator", { language, ...window });
    await operator.see(file.title);
    await operator.accessible("the list of sales");
    await operator.press(file.title, "main a");
    await operator.see(words("figure.waiting"));
    await operator.see(texts("figures", language)("rate.held"));
    await it.engine.until(`/sales/${file.sale}/room`, ({ state }) => state === "serving");
    await operator.see(words("room.serving"));
    await operator.press(words("pause"));
    const pausedMs = Date.now();
    await it.engine.until(`/sales/${file.sale}/room`, ({ state }) => state === "paused");
    assert.ok(Date.now() < pausedMs + 4000, "the pause is shown late");
    await operator.see(words("done.pause"));
    await operator.accessible("paused");
    await operator.fits();
    await operator.type(words("notice"), `Soon ${SCRIPT}`);
    await operator.press(words("notice-set"));
    await operator.see(words("done.notice"));
    const buyer = await it.person(t, { language, name: "reader" });
    await buyer.go(`/s/${file.sale}/room`);
    await buyer.see(room("paused"));
    await buyer.see("Soon <img");
    await operator.press(words("resume"));
    await operator.see(words("done.resume"));
    await operator.press(new RegExp(`^${words("close-room")}`));
    await operator.see(words("close-sure"));
    await operator.accessible("close for good?");
    await operator.press(words("close-room"), "dialog button");
    await operator.see(words("done.close"));
    await buyer.see(room("closed"));
    assert.equal(await buyer.browser.executeScript("return window.hacked"), null);
    assert.deepEqual(await operator.complaints(), []);
  });
}

for (const [language, window] of [["en", {}], ["zh", { width: 320, height: 720, dark: true }]]) {
  test(`an operator pauses a sale without a room with a notice, and says that it is sold out (${language})`, async (t) => {
    const [words, sale, seats] = ["operator", "sale", "seats"].map((page) => texts(page, language));
    const file = hall(`standing-${language}`);
    await it.engine.publish(file);
    const { order } = await it.engine.order(file.sale, `payer-${language}`, { tier: "stalls", best: { count: 1 } });
    const operator = await operatorAt(t, `/operator?sale=${file.sale}`, { language, ...window });
    await operator.type(words("standing-notice.en"), `Back at noon ${SCRIPT}`);
    await operator.type(words("standing-notice.zh"), `中午恢复 ${SCRIPT}`);
    await operator.press(words("notice-set"));
    await operator.see(words("done.notice"));
    await operator.press(words("pause"));
    await operator.see(words("done.pause"));
    const pausedMs = Date.now();
    await operator.see(words("resume"));
    await operator.accessible("a sale without a room, paused");
    await operator.fits();
    const notice = language === "en" ? "Back at noon <img" : "中午恢复 <img";
    const buyer = await it.person(t, { name: `payer-${language}`, language, ...window });
    await buyer.haveSession();
    const shows = async (path, ...all) => {
      await buyer.go(path);
      for (const text of all) await buyer.see(text);
      // What is read may be older than the page that is shown.
      await buyer.wait(() => buyer.browser.executeScript(() => document.querySelector("main h1") !== null), `${path}: there is no heading`);
      await buyer.accessible(path);
      await buyer.fits();
    };
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, pausedMs + 2_000 - Date.now())));
    await shows(`/s/${file.sale}`, sale("state.paused"), sale("say.paused"), notice);
    await shows(`/s/${file.sale}/seats`, seats("state.paused"), notice);
    await shows(`/checkout/${order}`, notice);
    await operator.press(words("resume"));
    await operator.see(words("done.resume"));
    await operator.press(words("notice-clear"));
    await operator.see(words("done.notice"));
    await operator.press(words("sold-out-set"));
    await operator.see(words("sold-out-clear"));
    await it.engine.until(`/sales/${file.sale}`, ({ state, file: { notice: said } }) => state === "sold_out" && said == null);
    await shows(`/s/${file.sale}`, sale("state.sold_out"), sale("say.sold_out"));
    assert.ok(!(await buyer.text()).includes(notice), "the notice still stands");
    await shows(`/s/${file.sale}/seats`, seats("state.sold_out"));
    await operator.press(words("sold-out-clear"));
    await it.engine.until(`/sales/${file.sale}`, ({ state }) => state === "open");
    assert.equal(await buyer.browser.executeScript("return window.hacked"), null);
    assert.deepEqual(await operator.complaints(), []);
  });
}

test("an operator sees what became of a sale's orders, and what was refused", async (t) => {
  const words = texts("figures", "en");
  const file = hall("lately");
  await it.engine.publish(file);
  await it.engine.paidOrder(file.sale, "lately-buyer", { tier: "stalls", seats: ["A-1-1"] });
  const refused = await it.engine.ask("/sales/nowhere/admissions", { as: "lately-buyer", body: { tickets: 1 } });
  assert.equal(refused.status, 404);
  const operator = await operatorAt(t, `/operator?sale=${file.sale}`);
  const counted = async (count) => (await operator.browser.findElement({ css: `.rates tr.${count} td:last-child` })).getText();
  await operator.wait(async () => (await counted("held")) === "1" && (await counted("paid")) === "1", "the paid order is not counted");
  assert.equal(await counted("expired"), "0");
  const taken = async (row) => (await operator.browser.findElement({ css: `.takings tr.${row} td:last-child` })).getText();
  await operator.wait(async () => {
    await operator.press(words("takings-again"));
    return (await taken("orders")) === "1" && (await taken("tickets")) === "1";
  }, "the paid order is not among the takings");
  assert.notEqual(await taken("taken_minor"), await taken("given_back_minor"));
  await operator.see(words("reason.not-found"));
  await operator.see("reserve");
  await operator.accessible("figures of the last minutes");
  await operator.fits();
});

test("an operator publishes a sale file after having seen it", async (t) => {
  const words = texts("operator", "en");
  const file = hall("published", { title: "Published in a browser" });
  const folder = mkdtempSync(join(tmpdir(), "onsale-sale-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "sale.json"), JSON.stringify(file));
  const operator = await operatorAt(t, "/operator?publish");
  await operator.wait(async () => {
    await operator.browser.findElement({ css: "input[type=file]" }).sendKeys(join(folder, "sale.json"));
    return true;
  }, "there is no field for the file");
  await operator.see(words("publish-new"));
  await operator.accessible("a file, seen before it is published");
  await operator.press(words("publish-send", { sale: file.sale }));
  await operator.press(words("publish-send", { sale: file.sale }), "dialog button");
  await operator.see(words("publish-done", { sale: file.sale, version: "1" }));
  assert.equal((await it.engine.do(`/sales/${file.sale}`)).title, file.title);
});

test("the order desk finds an order by its seat, shows its history, and refunds it", async (t) => {
  const words = texts("desk", "en");
  const file = hall("desk");
  await it.engine.publish(file);
  const { order } = await it.engine.paidOrder(file.sale, "desk-buyer", { tier: "stalls", seats: ["A-1-1", "A-1-2"] });
  const operator = await operatorAt(t, "/operator/desk");
  await operator.press(words("by.seat"), "input[type=radio]");
  await operator.type(words("field.sale"), file.sale);
  await operator.type(words("field.tier"), "stalls");
  await operator.type(words("field.seat"), "A-1-2");
  await operator.press(words("search"), "button");
  await operator.press(new RegExp(order), "main a");
  await operator.see(words("history"));
  await operator.see(words("step.paid"));
  await operator.accessible("an order at the desk");
  await operator.press(words("refund-all"), "input[type=radio]");
  await operator.press(like("desk", "en", "refund-start"), "main button");
  await operator.press(like("desk", "en", "refund-start"), "dialog button");
  await operator.see(saying("desk", "en", "refund-done"));
  await it.engine.until(`/orders/${order}`, ({ state }) => state === "refund_due" || state === "refunded", { as: "desk-buyer" });
  await operator.go("/operator");
  const home = texts("operator", "en");
  await operator.see(home("actions"));
  await operator.see(home("webhooks"));
  await operator.see(home("disputes-none"));
  await operator.accessible("accounts, disputes and webhooks");
  await operator.wait(async () => {
    await operator.go(`/operator?sale=${file.sale}`);
    await operator.see(home("settlement"));
    await operator.see(new RegExp(`merchant:house:${file.sale}|${home("accounts-none")}`));
    return (await operator.text()).includes(`merchant:house:${file.sale}`);
  }, "the sale's money is not booked");
  await operator.go(`/operator/desk?sale=${file.sale}`);
  await operator.press(words("export-start"));
  // Both tickets, one line each: what was given back is in it too.
  await operator.see(words("export-done.other", { count: 2 }));
});

test("a buyer sees nothing of the operators' pages, and may do nothing on their routes", async (t) => {
  const buyer = await it.person(t, { name: "mallory" });
  await buyer.go("/signed-in");
  // What the tab says of itself is not what the API believes.
  await setSession(buyer.browser, await it.engine.token("mallory"), "mallory", "operators");
  for (const path of ["/operator", "/operator?sale=nothing", "/operator/desk"]) {
    await buyer.go(path);
    await buyer.accessible(`${path}, as a buyer`);
  }
  for (const [path, method] of [["/operator/actions", "GET"], ["/operator/orders?order=1", "GET"], ["/operator/stuck", "GET"], ["/operator/disputes", "GET"], ["/operator/sales/x/board", "GET"], ["/operator/sales/x/figures", "GET"], ["/operator/sales/x/takings", "GET"], ["/operator/sales/x", "PUT"]]) {
    const { status } = await it.engine.ask(path, { method, as: "mallory", body: method === "PUT" ? {} : undefined });
    assert.ok([401, 403].includes(status), `${method} ${path}: ${status}`);
  }
});
