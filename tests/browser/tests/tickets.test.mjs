/** Tickets in the pocket: without a network, after a restart, and gone when their buyer signs out. */
import assert from "node:assert/strict";
import { fixture } from "../lib/fixture.mjs";
import { texts } from "../lib/person.mjs";
import { hall } from "../lib/sales.mjs";
import { saying } from "../lib/steps.mjs";

const { it, test } = fixture();

/** A paid order of two tickets that may be given back. */
async function paid(name) {
  const file = hall(name, { refunds: { until: "2099-01-01T00:00:00.000Z", fee_percent: 0 } });
  await it.engine.publish(file);
  const { order, lines } = await it.engine.paidOrder(file.sale, name, { tier: "stalls", best: { count: 2 } });
  return { file, order, seat: lines[0].tickets[0].seat };
}

const codes = (person) => person.browser.executeScript(() => document.querySelectorAll(".ticket svg.qr").length);
/** What is kept of tickets in the browser. */
const kept = (person) => person.browser.executeAsyncScript((done) => caches.open("onsale-kept-tickets").then((cache) => cache.keys()).then((keys) => done(keys.length)));

for (const [language, window] of [["en", {}], ["zh", { width: 320, height: 740, dark: true }]]) {
  test(`tickets that were seen are shown without a network, and put right with one (${language})`, async (t) => {
    const words = texts("tickets", language);
    const name = `pocket-${language}`;
    const { file, order, seat } = await paid(name);
    const buyer = await it.person(t, { name, language, hasWorker: true, ...window });
    await buyer.haveSession();
    await buyer.go(`/my/tickets/${order}`);
    await buyer.see(words("kept"));
    assert.equal(await codes(buyer), 2);
    const scopes = await buyer.browser.executeAsyncScript((done) => navigator.serviceWorker.getRegistrations().then((all) => done(all.map(({ scope }) => new URL(scope).pathname))));
    assert.deepEqual(scopes, ["/my/tickets/"], "the worker answers for no other page");
    await buyer.accessible("tickets that are kept");
    await buyer.fits();

    await buyer.offline(true);
    await buyer.browser.navigate().refresh();
    await buyer.see(saying("tickets", language, "as-of"));
    await buyer.see(file.title);
    await buyer.see("Stalls");
    assert.equal(await codes(buyer), 2);
    await buyer.accessible("tickets without a network");
    await buyer.fits();

    // One is given back meanwhile: this page cannot know it, and does as soon as there is a network again.
    await it.engine.do(`/orders/${order}/refunds`, { body: { number: 1, tickets: [{ tier: "stalls", seat }] }, as: name });
    await buyer.see(saying("tickets", language, "as-of"));
    assert.equal(await codes(buyer), 2);
    await buyer.offline(false);
    await buyer.see(words("void-text.buyer"));
    await buyer.wait(async () => !saying("tickets", language, "as-of").test(await buyer.text()), "the tickets are still said to be old");
    assert.equal(await codes(buyer), 1);

    // The browser is opened anew without a network: nobody is signed in, and what was seen is there.
    await buyer.offline(true);
    await buyer.browser.executeScript(() => sessionStorage.clear());
    await buyer.browser.navigate().refresh();
    await buyer.see(saying("tickets", language, "as-of"));
    await buyer.find(words("kept-remove"));
    assert.equal(await codes(buyer), 1);
    await buyer.accessible("tickets without a network and a session");
    await buyer.fits();
    await buyer.press(words("kept-remove"));
    await buyer.see(words("sign-in-first"));
    assert.deepEqual([await codes(buyer), await kept(buyer)], [0, 0]);
  });
}

test("signing out forgets the tickets, in the tab that shows them too, and another buyer finds none", async (t) => {
  const words = texts("tickets", "en");
  const { order } = await paid("leaves");
  const buyer = await it.person(t, { name: "leaves", hasWorker: true });
  await buyer.go(`/my/tickets/${order}`);
  await buyer.signIn();
  await buyer.see(words("kept"));
  const first = await buyer.browser.getWindowHandle();
  // The session of this tab is over, so that it shows what is kept.
  await buyer.browser.executeScript(() => sessionStorage.clear());
  await buyer.browser.navigate().refresh();
  await buyer.find(words("kept-sign-in"));
  await buyer.browser.switchTo().newWindow("tab");
  await buyer.go("/");
  await buyer.signIn();
  await buyer.signOut();
  await buyer.find(texts("shared", "en")("sign-in"));
  await buyer.browser.close();
  await buyer.browser.switchTo().window(first);
  await buyer.see(words("sign-in-ended"));
  assert.deepEqual([await codes(buyer), await kept(buyer)], [0, 0]);
  await buyer.offline(true);
  await buyer.browser.navigate().refresh();
  await buyer.see(words("sign-in-first"));
  assert.equal(await codes(buyer), 0);
  await buyer.offline(false);

  // Seen again, the session left behind: whoever signs in here next has nothing of it.
  await buyer.signIn();
  await buyer.see(words("kept"));
  await buyer.browser.executeScript(() => sessionStorage.clear());
  await buyer.browser.navigate().refresh();
  buyer.name = "leaves-other";
  await buyer.press(words("kept-sign-in"));
  await buyer.answerIssuer();
  await buyer.see(texts("shared", "en")("problem.not-found"));
  assert.deepEqual([await codes(buyer), await kept(buyer)], [0, 0]);
});
