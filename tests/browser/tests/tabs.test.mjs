/** What the tabs of one browser, and the devices of one buyer, know of each other: sessions, and orders that are held. */
import assert from "node:assert/strict";
import { fixture } from "../lib/fixture.mjs";
import { texts } from "../lib/person.mjs";
import { hall } from "../lib/sales.mjs";
import { payAtProvider, saying } from "../lib/steps.mjs";

const { it, test } = fixture();
const shared = texts("shared", "en");

/** A sale, and an order of a buyer in it that is held. */
async function heldOrder(name) {
  const file = hall(name);
  await it.engine.publish(file);
  const { order } = await it.engine.order(file.sale, name, { tier: "stalls", best: { count: 2 } });
  return { file, order };
}

/** Opens a tab and gives its handle. */
async function newTab(person) {
  await person.browser.switchTo().newWindow("tab");
  return person.browser.getWindowHandle();
}

test("a held order is announced on every page of its buyer, with its clock, until it is given up", async (t) => {
  const { file, order } = await heldOrder("held");
  const banner = saying("shared", "en", "held.text.other", { count: 2, title: file.title });
  const buyer = await it.person(t, { name: "held", width: 320 });
  await buyer.haveSession();
  for (const path of ["/", `/s/${file.sale}`, `/s/${file.sale}/seats`, "/my/orders", `/my/tickets/${order}`]) {
    await buyer.go(path);
    await buyer.see(banner, "aside");
    await buyer.see(/\b0?9:\d\d left to pay/, "aside");
    await buyer.accessible(`${path} with a held order`);
    await buyer.fits();
  }
  await buyer.press(shared("held.go"), "aside a");
  await buyer.at(`/checkout/${order}`);
  await buyer.see(texts("checkout", "en")("how-to-pay"));
  assert.equal(await buyer.has(shared("held.go"), "aside a"), false, "its own checkout does not announce it");

  // A second device knows it too, and learns that it was given up when somebody looks at it again.
  const phone = await it.person(t, { name: "held" });
  await phone.haveSession();
  await phone.go("/");
  await phone.see(banner, "aside");
  await it.engine.do(`/orders/${order}/cancel`, { method: "POST", as: "held" });
  await phone.browser.executeScript(() => document.dispatchEvent(new Event("visibilitychange")));
  await phone.wait(async () => !(await phone.has(shared("held.go"), "aside a")), "the order that was given up is still announced");
});

test("what becomes of a held order in one tab is said in the other", async (t) => {
  const { file, order } = await heldOrder("told");
  const buyer = await it.person(t, { name: "told" });
  await buyer.haveSession();
  await buyer.go("/");
  const first = await buyer.browser.getWindowHandle();
  await buyer.see(saying("shared", "en", "held.text.other", { count: 2, title: file.title }), "aside");
  await newTab(buyer);
  await buyer.go("/signed-in");
  await buyer.haveSession();
  await buyer.go(`/checkout/${order}`);
  await payAtProvider(buyer);
  await buyer.see(texts("checkout", "en")("done.paid"));
  await buyer.browser.switchTo().window(first);
  await buyer.wait(async () => !(await buyer.has(shared("held.go"), "aside a")), "the order that was paid is still announced");
});
