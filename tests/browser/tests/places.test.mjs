/** Payments that wait for their place: at a provider that starts one a second, and many want to pay. */
import assert from "node:assert/strict";
import { fixture } from "../lib/fixture.mjs";
import { texts } from "../lib/person.mjs";
import { hall } from "../lib/sales.mjs";
import { openProvider, pressAtProvider } from "../lib/steps.mjs";

const { it, test } = fixture(["--limits", "aws", "--payments-per-second", "1"]);

/** Others who begin to pay just before: each has a start of a second, and the last ones wait for it. */
const OTHERS = 15;

for (const language of ["en", "zh"]) {
  test(`a payment has its place, which the page counts down to and starts in by itself (${language})`, async (t) => {
    const words = texts("checkout", language);
    const file = hall(`places-${language}`);
    await it.engine.publish(file);
    const others = await Promise.all(Array.from({ length: OTHERS }, async (_, n) => {
      const name = `other-${language}-${n}`;
      const { order } = await it.engine.order(file.sale, name, { tier: "stalls", best: { count: 1 } });
      return { name, order };
    }));
    const buyer = await it.person(t, { name: `waits-${language}`, language });
    const { order } = await it.engine.order(file.sale, `waits-${language}`, { tier: "stalls", best: { count: 1 } });
    await buyer.haveSession();
    await buyer.go(`/checkout/${order}`);
    await buyer.see(words("how-to-pay"));
    const asked = await Promise.all(others.map(({ name, order: other }) =>
      it.engine.ask(`/orders/${other}/payments`, { body: { provider: "stripe", return_url: `${it.engine.url}/checkout/${other}` }, as: name })));
    // At one start a second the provider may count two in the same one, and refuse the second.
    assert.ok(asked.every(({ status }) => [200, 429, 503].includes(status)), JSON.stringify(asked.map(({ document }) => document)));
    await openProvider(buyer);
    await buyer.see(words("place-title"));
    await buyer.accessible(`a payment that waits for its place (${language})`);
    const shown = await it.engine.do(`/orders/${order}`, { as: `waits-${language}` });
    assert.equal(shown.places[0].provider, "stripe");
    // Who loads the page again goes on waiting for the same place, and presses nothing.
    await buyer.browser.navigate().refresh();
    await buyer.see(words("place-title"));
    const again = await it.engine.do(`/orders/${order}`, { as: `waits-${language}` });
    assert.deepEqual(again.places, shown.places);
    await pressAtProvider(buyer, "pay");
    await buyer.see(words("done.paid"));
  });
}
