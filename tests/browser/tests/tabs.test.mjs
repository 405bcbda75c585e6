/** What the tabs of one browser, and the devices of one buyer, know of each other: sessions, and orders that are held. */
import assert from "node:assert/strict";
import { fixture } from "../lib/fixture.mjs";
import { texts } from "../lib/person.mjs";
import { hall, roomHall } from "../lib/sales.mjs";
import { joinRoom, payAtProvider, saying } from "../lib/steps.mjs";

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
    const asked = await buyer.browser.executeScript(() => performance.getEntriesByType("resource").filter(({ name }) => /\/orders\?/.test(name)).length);
    // My orders asks again and again by itself, while an order of its list is about to change.
    if (path !== "/my/orders") assert.equal(asked, 1, `${path} asks once`);
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

/** Whether a text is kept where it outlives the tab, or is in the address. */
const isKept = (person, text) => person.browser.executeScript((token) => JSON.stringify({ ...localStorage }).includes(token) || document.cookie.includes(token) || location.href.includes(token), text);
const sessionOf = (person, role = "buyers") => person.browser.executeScript((key) => JSON.parse(sessionStorage.getItem(key)), `onsale.session.${role}`);

test("a second tab is signed in as the first is, and signing out in one is signing out in all", async (t) => {
  const { order } = await heldOrder("shares");
  const [checkout, orders] = ["checkout", "orders"].map((page) => texts(page, "en"));
  const buyer = await it.person(t, { name: "shares" });
  await buyer.go("/my/orders");
  await buyer.signIn();
  await buyer.see("Evening of shares");
  const first = await buyer.browser.getWindowHandle();
  const { token } = await sessionOf(buyer);
  const second = await newTab(buyer);
  await buyer.go(`/checkout/${order}`);
  await buyer.see(checkout("how-to-pay"));
  assert.equal((await sessionOf(buyer)).token, token);
  assert.equal(await isKept(buyer, token), false, "the token is in no storage that outlives the tab");

  // Operators have sessions of their own: a buyer's is not given to their pages.
  await buyer.go("/operator");
  await buyer.find(shared("sign-in"));
  assert.equal(await sessionOf(buyer, "operators"), null);

  // The first tab is elsewhere when the second signs out, and hears nothing of it.
  await buyer.browser.switchTo().window(first);
  await buyer.browser.get("data:text/html,elsewhere");
  const third = await newTab(buyer);
  await buyer.go("/my/orders");
  await buyer.see("Evening of shares");
  await buyer.browser.switchTo().window(second);
  await buyer.go("/my/orders");
  await buyer.signOut();
  await buyer.find(shared("sign-in"), "main button");
  assert.equal(await sessionOf(buyer), null);
  await buyer.browser.switchTo().window(third);
  await buyer.find(shared("sign-in"), "main button");
  assert.equal(await sessionOf(buyer), null);
  await buyer.browser.switchTo().window(first);
  await buyer.go("/my/orders");
  await buyer.see(orders("sign-in-first"));
  // Nobody is left to answer.
  await newTab(buyer);
  await buyer.go(`/checkout/${order}`);
  await buyer.see(checkout("sign-in-first"));

  // Whoever signs in again is signed in everywhere.
  await buyer.signIn();
  await buyer.see(checkout("how-to-pay"));
  await buyer.browser.switchTo().window(first);
  await buyer.see("Evening of shares");
});

test("whoever waits in the room is signed in in another tab", async (t) => {
  const file = roomHall("waits", 3600);
  await it.engine.publish(file);
  const buyer = await it.person(t, { name: "waits" });
  await buyer.go(`/s/${file.sale}`);
  await joinRoom(buyer, file.sale);
  await buyer.see(texts("room", "en")("joined"));
  const room = await buyer.browser.getWindowHandle();
  await newTab(buyer);
  await buyer.go("/my/orders");
  await buyer.signOut();
  await buyer.find(shared("sign-in"), "main button");
  await buyer.browser.switchTo().window(room);
  await buyer.wait(async () => (await sessionOf(buyer)) === null, "the room is signed in still");
});

test("a session that has run out is not shared, and one that the API refuses not either", async (t) => {
  const { order } = await heldOrder("stale");
  const checkout = texts("checkout", "en");
  const buyer = await it.person(t, { name: "stale" });
  await buyer.haveSession();
  const good = await sessionOf(buyer);
  const first = await buyer.browser.getWindowHandle();
  const keep = (session) => buyer.browser.executeScript((value) => sessionStorage.setItem("onsale.session.buyers", JSON.stringify(value)), session);
  await buyer.go("/");
  await keep({ ...good, expiresAtMs: Date.now() - 1_000 });
  await newTab(buyer);
  await buyer.go(`/checkout/${order}`);
  await buyer.see(checkout("sign-in-first"));
  // The other tab does not know yet that its token is refused: this one is asked about it once, and goes on without.
  await buyer.browser.switchTo().window(first);
  await keep({ ...good, token: `${good.token}x` });
  await newTab(buyer);
  await buyer.go(`/checkout/${order}`);
  await buyer.see(checkout("sign-in-first"));
  await buyer.wait(async () => (await sessionOf(buyer)) === null, "the tab keeps a token that was refused");
  // Once that has a good one again, a new tab has it too.
  await buyer.browser.switchTo().window(first);
  await keep(good);
  await newTab(buyer);
  await buyer.go(`/checkout/${order}`);
  await buyer.see(checkout("how-to-pay"));
});
