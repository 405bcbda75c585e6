/** Operators: a sale live, its controls, publishing, the order desk; and buyers who try the same. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Key } from "selenium-webdriver";
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
  await operator.see(home("debts"));
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

for (const [language, window] of [["en", {}], ["zh", { width: 320, height: 720, dark: true }]]) {
  test(`an operator says what became of refunds that the provider does not decide (${language})`, async (t) => {
    const words = texts("desk", language);
    const file = hall(`words-${language}`);
    await it.engine.publish(file);
    const buy = async (buyer) => ({ buyer, ...(await it.engine.paidOrder(file.sale, buyer, { tier: "stalls", best: { count: 2 } })) });
    const first = ({ refunds }) => refunds?.find(({ number }) => number === 1)?.state;
    const state = async ({ order, buyer }) => first(await it.engine.do(`/orders/${order}/refunds`, { as: buyer }));
    const is = ({ order, buyer }, wanted) => it.engine.until(`/orders/${order}/refunds`, (document) => first(document) === wanted, { as: buyer });

    // Somebody gives all the money back in the dashboard: the tickets stay by a word.
    const kept = await buy(`kept-${language}`);
    await it.engine.refundByHand(kept.payment, kept.total_minor);
    await is(kept, "outside");
    const operator = await operatorAt(t, `/operator/desk?order=${kept.order}`, { language, ...window });
    await operator.see(saying("desk", language, "word-outside", { number: "1" }), ".warning");
    await operator.accessible("a refund that was made outside");
    await operator.fits();
    await operator.press(`${words("word.keep")}…`, "main button");
    await operator.see(words("word-sure.keep"), "dialog");
    await operator.accessible("the tickets are kept");
    await operator.fits();
    assert.equal(await state(kept), "outside", "nothing happens before the press");
    await operator.press(words("word.keep"), "dialog button");
    await operator.see(saying("desk", language, "word-done", { number: "1" }));
    assert.equal(await state(kept), "refunded");

    // Somebody has sent a part back and told nobody: the provider refuses the whole, and it is paid otherwise.
    const owed = await buy(`owed-${language}`);
    await it.engine.refundByHand(owed.payment, 100, { tells: false });
    await it.engine.do(`/orders/${owed.order}/refunds/operator`, { body: { number: 1, tickets: "all", amount_minor: owed.total_minor }, as: null });
    await is(owed, "failed");
    await operator.go(`/operator/desk?order=${owed.order}`);
    await operator.see(saying("desk", language, "word-failed", { number: "1" }), ".warning");
    await operator.press(`${words("word.settled")}…`, "main button");
    await operator.press(words("word.settled"), "dialog button");
    await operator.see(words("word-how-bad"), "dialog");
    assert.equal(await operator.focused(), words("word-how"));
    await operator.accessible("how it was paid is missing");
    await operator.fits();
    await operator.type(words("word-how"), `bank transfer 4711 ${SCRIPT}`);
    await operator.press(words("word.settled"), "dialog button");
    await operator.see(saying("desk", language, "word-done", { number: "1" }));
    assert.equal(await state(owed), "settled");
    assert.deepEqual(await operator.complaints(), []);
  });
}

/** The buttons of a payment of no order on the operators' page. */
const buttonsOf = ({ payment }) => `button[aria-describedby="unmatched-stripe-${payment}"]`;

/** Waits until an operator's page lists a payment of no order: an index has it a moment after each write. */
const listed = (operator, { payment }) => operator.wait(async () => {
  const there = () => operator.browser.executeScript((id) => document.getElementById(id) !== null, `unmatched-stripe-${payment}`);
  if (await there()) return true;
  await operator.go("/operator");
  await operator.wait(() => operator.browser.executeScript(() => document.querySelector("[aria-labelledby=unmatched] .hint") !== null), "the payments of no order do not come");
  return there();
}, `${payment} is not listed`);

for (const [language, window] of [["en", {}], ["zh", { width: 320, height: 720, dark: true }]]) {
  test(`payments of no order are sent back or explained, each with a reason (${language})`, async (t) => {
    const words = texts("operator", language);
    const file = hall(`no-order-${language}`);
    await it.engine.publish(file);
    const { order } = await it.engine.order(file.sale, `started-${language}`, { tier: "stalls", best: { count: 1 } });
    const deployment = await it.engine.deployment(order, `started-${language}`);
    assert.match(deployment, /^[a-z0-9]{4,9}$/);
    // Numbers of some minutes before, as orders have them that a restored backup has lost.
    const [lost, raced, waits] = [40n, 39n, 38n].map((bit) => String(BigInt(order) - (1n << bit)));
    const typed = language === "en" ? "48151" : "48152";
    const captures = [];
    for (const [number, amount] of [[lost, 12_345], [typed, 6_700], [raced, 8_900], [waits, 1_000]]) captures.push({ number, ...(await it.engine.capture(deployment, number, amount)) });
    assert.deepEqual(captures.map(({ outcome }) => outcome), captures.map(() => "unmatched"));
    const [back, explained, other, waiting] = captures;

    const operator = await operatorAt(t, "/operator", { language, ...window });
    await operator.see(words("unmatched"), "h2");
    const entry = ({ payment }) => operator.browser.executeScript((id) => document.getElementById(id)?.closest("li").innerText, `unmatched-stripe-${payment}`);
    const leaves = (one) => operator.wait(async () => (await entry(one)) === null, `${one.payment} is still on the list`);
    await listed(operator, explained);
    assert.ok((await entry(explained)).includes(words("unmatched-never")), await entry(explained));
    await listed(operator, back);
    const said = await entry(back);
    for (const text of ["123.45", `stripe ${back.payment}`, words("unmatched-order", { order: lost })]) assert.ok(said.includes(text), said);
    assert.ok(!said.includes(words("unmatched-never")), said);
    await operator.accessible("payments of no order");
    await operator.fits();

    // Nothing is sent without a reason, and by keyboard alone one is.
    await operator.browser.executeScript((css) => document.querySelector(css).focus(), buttonsOf(back));
    await operator.keys(Key.ENTER);
    await operator.see(words("unmatched-text.send_back"), "dialog");
    assert.equal(await operator.focused(), words("unmatched-reason"));
    await operator.tabTo(words("unmatched.send_back"));
    await operator.keys(Key.ENTER);
    await operator.see(words("unmatched-reason-bad"), "dialog");
    assert.equal(await operator.focused(), words("unmatched-reason"));
    await operator.accessible("a reason is missing");
    await operator.fits();
    assert.deepEqual((await it.engine.stripe(`/v1/refunds?payment_intent=${back.payment}`)).data, []);
    await operator.keys("x".repeat(201));
    await operator.tabTo(words("unmatched.send_back"));
    await operator.keys(Key.ENTER);
    await operator.see(words("unmatched-reason-bad"), "dialog");
    await operator.typeOver(`lost ${SCRIPT}`);
    await operator.tabTo(words("unmatched.send_back"));
    await operator.keys(Key.ENTER);
    const done = saying("operator", language, "unmatched-done.send_back", { payment: `stripe ${back.payment}` });
    await operator.see(done);
    assert.match(await operator.focused(), done);
    await leaves(back);

    await listed(operator, explained);
    await operator.press(new RegExp(words("unmatched.explain")), buttonsOf(explained));
    await operator.type(words("unmatched-reason"), "a season card, sold by hand");
    await operator.press(words("unmatched.explain"), "dialog button");
    await operator.see(saying("operator", language, "unmatched-done.explain", { payment: `stripe ${explained.payment}` }));
    await leaves(explained);

    // Another operator is faster, and says otherwise.
    await listed(operator, other);
    await operator.press(new RegExp(words("unmatched.send_back")), buttonsOf(other));
    await it.engine.decide("explain", other.number, other.payment);
    await operator.type(words("unmatched-reason"), "too late");
    await operator.press(words("unmatched.send_back"), "dialog button");
    await operator.see(words("unmatched-said-otherwise", { payment: `stripe ${other.payment}` }));
    await leaves(other);
    await operator.accessible("decided otherwise");
    await operator.fits();

    const token = await operator.browser.executeScript(() => JSON.parse(sessionStorage.getItem("onsale.session.operators")).token);
    const headers = { authorization: `Bearer ${token}` };
    const isOf = ({ payment }) => (row) => row.payment === payment;
    const { unmatched } = await it.engine.until("/operator/unmatched", ({ unmatched: all }) => all?.some(isOf(waiting)), { headers });
    for (const one of [back, explained, other]) assert.equal(unmatched.find(isOf(one)), undefined);
    // What was said stands, and the same again sends nothing more.
    const say = async (word, { number, payment }) => (await it.engine.ask("/operator/unmatched", { headers, body: { order: number, provider: "stripe", payment, word, reason: "again" } })).status;
    assert.deepEqual([await say("explain", back), await say("send_back", explained), await say("send_back", other)], [409, 409, 409]);
    const refunds = async ({ payment }) => (await it.engine.stripe(`/v1/refunds?payment_intent=${payment}`)).data.map(({ amount }) => amount);
    await operator.wait(async () => (await refunds(back)).length > 0, "no money goes back");
    assert.equal(await say("send_back", back), 200);
    assert.deepEqual(await Promise.all(captures.map(refunds)), [[12_345], [], [], []]);
    await operator.go("/operator");
    await operator.see(words("action.unmatched", { subject: words("subject.order", { order: typed }) }));
    await operator.see("a season card, sold by hand");
    await operator.see("said by another");
    assert.equal(await operator.browser.executeScript("return window.hacked"), null);
    assert.deepEqual(await operator.complaints(), []);
  });
}

test("who may not refund sees payments of no order, and is offered nothing about them", async (t) => {
  const words = texts("operator", "en");
  const file = hall("no-right");
  await it.engine.publish(file);
  const { order } = await it.engine.order(file.sale, "no-right", { tier: "stalls", best: { count: 1 } });
  const number = String(BigInt(order) - (1n << 40n));
  const one = await it.engine.capture(await it.engine.deployment(order, "no-right"), number, 100);
  const operator = await operatorAt(t, "/operator");
  await listed(operator, one);
  assert.equal((await operator.browser.findElements({ css: buttonsOf(one) })).length, 2);
  await operator.browser.executeScript((key) => sessionStorage.setItem(key, JSON.stringify({ ...JSON.parse(sessionStorage.getItem(key)), scope: "openid onsale/watch" })), "onsale.session.operators");
  await operator.go("/operator");
  await listed(operator, one);
  await operator.see(words("no-right.refund"));
  assert.equal((await operator.browser.findElements({ css: buttonsOf(one) })).length, 0);
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
  for (const [path, method] of [["/operator/actions", "GET"], ["/operator/orders?order=1", "GET"], ["/operator/stuck", "GET"], ["/operator/disputes", "GET"], ["/operator/unmatched", "GET"], ["/operator/unmatched", "POST"], ["/operator/sales/x/board", "GET"], ["/operator/sales/x/figures", "GET"], ["/operator/sales/x/takings", "GET"], ["/operator/sales/x", "PUT"]]) {
    const { status } = await it.engine.ask(path, { method, as: "mallory", body: method === "GET" ? undefined : {} });
    assert.ok([401, 403].includes(status), `${method} ${path}: ${status}`);
  }
});
