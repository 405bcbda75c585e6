/** Every page in the states that no journey passes through: axe finds nothing, and nothing is wider than a phone. */
import assert from "node:assert/strict";
import { fixture } from "../lib/fixture.mjs";
import { texts } from "../lib/person.mjs";
import { hall } from "../lib/sales.mjs";

const { it, test } = fixture();

/** The sales whose pages are looked at, by what is said of them. */
async function publishAll() {
  const past = new Date(Date.now() - 1000).toISOString();
  const later = new Date(Date.now() + 86_400_000).toISOString();
  const sales = {
    "say.choose": hall("open"),
    "say.sign-in-wait": hall("upcoming", { opens_at: later }),
    "say.paused": hall("paused", { state: "paused" }),
    "say.closed": hall("closed", { closes_at: past }),
    "say.sold_out": hall("sold", { tiers: [{ tier: "one", name: "One", price_minor: 100, general_admission: 1 }] }),
    "say.sign-in": hall("room", { opens_at: later, room: {} }),
  };
  for (const file of Object.values(sales)) await it.engine.publish(file);
  await it.engine.order(sales["say.sold_out"].sale, "quick", { tier: "one", best: { count: 1 } });
  await it.engine.until(`/sales/${sales["say.sold_out"].sale}/availability`, ({ tiers }) => tiers?.[0]?.available === 0);
  return sales;
}

for (const [language, window] of [["en", {}], ["zh", { width: 320, height: 720, dark: true }]]) {
  test(`pages nobody is signed in to, and sales in each state (${language})`, async (t) => {
    const sales = await publishAll();
    const visitor = await it.person(t, { language, name: `visitor-${language}`, ...window });
    const check = async (path, text) => {
      await visitor.go(path);
      await visitor.see(text);
      await visitor.accessible(path);
      await visitor.fits();
    };
    const [index, sale, seats, shared] = ["index", "sale", "seats", "shared"].map((page) => texts(page, language));
    for (const [key, file] of Object.entries(sales)) await check(`/s/${file.sale}`, sale(key));
    await check("/nothing/here", texts("404", language)("title"));
    await check("/s/there-is-none", sale("missing"));
    await check("/s/there-is-none/seats", seats("not-found"));
    await check(`/s/${sales["say.paused"].sale}/seats`, seats("state.paused"));
    await check("/my/orders", texts("orders", language)("sign-in-first"));
    await check("/my/tickets/1", texts("tickets", language)("sign-in-first"));
    await check("/checkout/1", texts("checkout", language)("sign-in-first"));
    await check("/operator", texts("operator", language)("sign-in-first"));
    await check("/operator/desk", texts("operator", language)("sign-in-first"));
    await check("/scan", texts("scan", language)("sign-in-first"));
    await check("/signed-in?code=invented&state=invented", texts("signed-in", language)("title"));
    await check("/", index("search.title"));
    await visitor.type(index("search.title"), "there is no such title");
    await visitor.see(index("none"));
    await visitor.accessible("a search that finds nothing");
    await visitor.haveSession();
    await check("/my/orders", texts("orders", language)("none"));
    await it.engine.order(sales["say.choose"].sale, visitor.name, { tier: "stalls", best: { count: 1 } });
    await check("/my/orders", texts("orders", language)("allowances"));
    assert.deepEqual(await visitor.complaints(), []);
    await visitor.see(shared("my-orders"));
  });
}
