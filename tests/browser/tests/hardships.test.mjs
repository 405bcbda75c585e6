/** What goes wrong around a purchase: the network, the clock, storage, sessions, tabs, and what others do meanwhile. */
import assert from "node:assert/strict";
import { fixture } from "../lib/fixture.mjs";
import { texts } from "../lib/person.mjs";
import { hall, roomHall } from "../lib/sales.mjs";
import { actAtProvider, chooseBest, chooseOnMap, hold, like, openTickets, payAtProvider, saying } from "../lib/steps.mjs";

const { it, test } = fixture();

/** How long the network is away in each step. */
const AWAY_MS = 10_000;

/** Takes the network away for ten seconds, and does something meanwhile. */
async function away(person, meanwhile) {
  await person.offline(true);
  const backMs = Date.now() + AWAY_MS;
  await meanwhile();
  await person.wait(() => Date.now() >= backMs, "time stands still");
  await person.offline(false);
}

/** Presses a button again, as long as that is what leads there. */
async function pressUntil(person, name, path) {
  await person.wait(async () => {
    if (path.test(await person.path())) return true;
    await person.pressIfThere(name);
    return false;
  }, `${name} does not lead to ${path}`);
}

test("the network is away for ten seconds before and after joining, and the place is there", async (t) => {
  const sale = texts("sale", "en");
  const buyer = await it.person(t, { name: "away-joining" });
  const file = roomHall("away", 3600);
  await it.engine.publish(file);
  await buyer.go(`/s/${file.sale}`);
  await buyer.find(sale("step.sign-in"));
  await away(buyer, async () => {
    await buyer.press(sale("step.sign-in"));
    await buyer.see(texts("shared", "en")("sign-in-failed"));
    await buyer.accessible("signing in without a network");
  });
  await buyer.signIn(sale("step.sign-in"));
  await buyer.find(sale("step.join"));
  await away(buyer, () => buyer.press(sale("step.join")));
  await pressUntil(buyer, sale("step.join"), /room$/);
  await buyer.see(texts("room", "en")("joined"));
  await away(buyer, () => buyer.see(texts("room", "en")("joined")));
  await buyer.browser.navigate().refresh();
  await buyer.see(texts("room", "en")("joined"));
});

test("the network is away for ten seconds while seats are held and paid, and one order is made", async (t) => {
  const [seats, checkout] = ["seats", "checkout"].map((page) => texts(page, "en"));
  const pay = like("checkout", "en", "pay");
  const buyer = await it.person(t, { name: "away" });
  const file = hall("away");
  await it.engine.publish(file);
  await buyer.haveSession();
  await buyer.go(`/s/${file.sale}/seats`);
  await chooseOnMap(buyer, 2);
  await away(buyer, async () => {
    await buyer.press(seats("hold"));
    await buyer.see(saying("seats", "en", "step.no-answer"));
    await buyer.accessible("holding without a network");
  });
  await buyer.at(/^\/checkout\/\d+$/);
  const order = (await buyer.path()).split("/")[2];
  await buyer.see(checkout("how-to-pay"));
  await away(buyer, async () => {
    await buyer.press(pay, "button");
    await buyer.see(/again|No answer/);
    await buyer.accessible("paying without a network");
  });
  await buyer.wait(async () => {
    if (await buyer.browser.executeScript(() => document.querySelector("button[name=action]") !== null)) return true;
    // The checkout's own button: the provider's, which may be there by now, has such a name too.
    await buyer.pressIfThere(pay, "button.pay");
    return false;
  }, "the provider's page does not come");
  await actAtProvider(buyer, "pay", order);
  await openTickets(buyer, order);
  await buyer.go("/my/orders");
  await buyer.see(file.title);
  await away(buyer, () => buyer.see(file.title));
  await buyer.see(file.title);
  const { orders } = await it.engine.do("/orders", { as: "away" });
  assert.equal(orders.length, 1, "one order was made");
});

test("a clock that is minutes or an hour wrong changes nothing in a purchase, and not in signing in", async (t) => {
  for (const byMs of [-180_000, -3_600_000, 3_600_000]) {
    const file = hall("clock");
    await it.engine.publish(file);
    const buyer = await it.person(t, { name: `clock${byMs}` });
    await buyer.wrongClock(byMs);
    await buyer.go(`/s/${file.sale}/seats`);
    // For real: the issuer's tokens say from when on they are valid.
    await buyer.signIn();
    await buyer.at(`/s/${file.sale}/seats`);
    await chooseBest(buyer, "Stalls", 2);
    const order = await hold(buyer);
    await buyer.see(/\b0?9:\d\d\b/);
    await payAtProvider(buyer);
    await openTickets(buyer, order);
    await buyer.finish();
  }
});

test("a session that has run out in the checkout is signed in again, and comes back to the order", async (t) => {
  const file = hall("session");
  await it.engine.publish(file);
  const { order } = await it.engine.order(file.sale, "session", { tier: "stalls", best: { count: 1 } });
  const buyer = await it.person(t, { name: "session" });
  await buyer.haveSession();
  await buyer.go(`/checkout/${order}`);
  await buyer.see(texts("checkout", "en")("how-to-pay"));
  await buyer.browser.executeScript(() => {
    const session = JSON.parse(sessionStorage.getItem("onsale.session.buyers"));
    sessionStorage.setItem("onsale.session.buyers", JSON.stringify({ ...session, token: `${session.token}x` }));
  });
  await buyer.wait(async () => {
    if (/[Ss]ign in/.test(await buyer.text("main"))) return true;
    // The page asks for the order by itself too, and may know by now that nobody is signed in.
    await buyer.pressIfThere(like("checkout", "en", "pay"), "button.pay");
    return false;
  }, "nobody is asked to sign in");
  await buyer.accessible("a session that has run out");
  await buyer.press(/Sign in/, "main button");
  await buyer.answerIssuer();
  await buyer.at(`/checkout/${order}`);
  await payAtProvider(buyer);
  await openTickets(buyer, order);
});

test("what is done in one tab is said in the other", async (t) => {
  const file = hall("tabs");
  await it.engine.publish(file);
  const buyer = await it.person(t, { name: "tabs" });
  const { order } = await it.engine.order(file.sale, "tabs", { tier: "stalls", best: { count: 1 } });
  await buyer.haveSession();
  await buyer.go(`/checkout/${order}`);
  const first = await buyer.browser.getWindowHandle();
  await buyer.browser.switchTo().newWindow("tab");
  await buyer.go("/signed-in");
  await buyer.haveSession();
  await buyer.go(`/checkout/${order}`);
  await payAtProvider(buyer);
  await buyer.see(texts("checkout", "en")("done.paid"));
  await buyer.browser.switchTo().window(first);
  await buyer.see(texts("checkout", "en")("done.paid"));
  assert.equal(await buyer.has(like("checkout", "en", "pay"), "button"), false);
});

test("the back button leads to the choice as it was, and to the order that there is", async (t) => {
  const file = hall("back");
  await it.engine.publish(file);
  const buyer = await it.person(t, { name: "back" });
  await buyer.haveSession();
  await buyer.go(`/s/${file.sale}/seats`);
  await chooseOnMap(buyer, 2);
  const order = await hold(buyer);
  await buyer.see(texts("checkout", "en")("how-to-pay"));
  await buyer.browser.navigate().back();
  await buyer.at(`/s/${file.sale}/seats`);
  await buyer.press(texts("shared", "en")("held.go"));
  await buyer.at(`/checkout/${order}`);
  await payAtProvider(buyer);
  await openTickets(buyer, order);
  await buyer.browser.navigate().back();
  await buyer.see(texts("checkout", "en")("done.paid"));
});

test("a sale that ends while the page is open takes no order, and says so", async (t) => {
  const file = hall("ends");
  await it.engine.publish(file);
  const buyer = await it.person(t, { name: "ends" });
  await buyer.haveSession();
  await buyer.go(`/s/${file.sale}/seats`);
  await chooseBest(buyer, "Stalls", 2);
  await it.engine.publish({ ...file, closes_at: new Date(Date.now() - 1000).toISOString() });
  await it.engine.until(`/sales/${file.sale}`, ({ state }) => state === "closed");
  await buyer.press(texts("seats", "en")("hold"));
  await buyer.see(texts("seats", "en")("refused.sale-closed"));
  await buyer.accessible("a sale that has ended");
  await buyer.go(`/s/${file.sale}`);
  await buyer.see(texts("sale", "en")("say.closed"));
});

test("where storage is forbidden the pages say what that means", async (t) => {
  const file = hall("stores");
  await it.engine.publish(file);
  const buyer = await it.person(t, { name: "stores" });
  await buyer.withoutStorage();
  for (const [path, text] of [["/", file.title], [`/s/${file.sale}`, file.title], [`/s/${file.sale}/seats`, texts("seats", "en")("forgetful")]]) {
    await buyer.go(path);
    await buyer.see(text);
    await buyer.accessible(`${path} without storage`);
  }
  await buyer.press(/Sign in/, "header button");
  await buyer.see(texts("shared", "en")("sign-in-storage"));
});

test("no other site can show a page in a frame", async (t) => {
  const buyer = await it.person(t);
  await buyer.browser.get(`data:text/html,<iframe src="${it.engine.url}/"></iframe>`);
  await buyer.browser.switchTo().frame(0);
  assert.match(await buyer.browser.executeScript("return location.href"), /^chrome-error:/);
});
