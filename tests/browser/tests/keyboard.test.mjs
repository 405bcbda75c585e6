/** Everything by keyboard alone. */
import assert from "node:assert/strict";
import { Key } from "selenium-webdriver";
import { fixture } from "../lib/fixture.mjs";
import { texts } from "../lib/person.mjs";
import { hall } from "../lib/sales.mjs";
import { like } from "../lib/steps.mjs";

const { it, test } = fixture();

/** Signs in with the keyboard, wherever the issuer's form has its fields. */
async function signInByKeys(person, button) {
  await person.tabTo(button);
  await person.keys(Key.ENTER);
  await person.wait(() => person.browser.executeScript(() => document.querySelector("form input:not([type=hidden])") !== null), "there is no form of the issuer");
  await person.wait(async () => {
    await person.keys(Key.TAB);
    return person.browser.executeScript(() => document.activeElement?.matches("input:not([type=hidden]):not([type=checkbox])"));
  }, "the tab key leads to no field");
  await person.typeOver(person.name);
  await person.keys(Key.ENTER);
}

for (const language of ["en", "zh"]) {
  test(`from the storefront to the ticket by keyboard alone (${language})`, async (t) => {
    const [index, sale, seats, checkout] = ["index", "sale", "seats", "checkout"].map((page) => texts(page, language));
    const file = hall(`keys-${language}`);
    await it.engine.publish(file);
    const buyer = await it.person(t, { language, name: `keys-${language}`, reducedMotion: true });
    await buyer.go("/");
    await buyer.see(file.title);
    await buyer.keys(Key.TAB);
    assert.equal(await buyer.focused(), texts("shared", language)("skip"));
    await buyer.tabTo(index("search.title"));
    await buyer.keys(file.title);
    await buyer.tabTo(new RegExp(file.title));
    await buyer.keys(Key.ENTER);
    await buyer.at(`/s/${file.sale}`);
    await buyer.find(sale("step.choose"));
    await buyer.tabTo(sale("step.choose"));
    await buyer.keys(Key.ENTER);
    await buyer.at(`/s/${file.sale}/seats`);
    await buyer.find(seats("way.best"));
    await buyer.tabTo(seats("way.best"));
    await buyer.keys(Key.ARROW_RIGHT);
    await buyer.tabTo(seats("section"));
    await buyer.keys("B");
    await buyer.find(like("seats", language, "seat-in-row", { row: "1", state: seats("state-of.free") }));
    await buyer.tabTo(like("seats", language, "seat-in-row", { row: "1" }));
    await buyer.keys(Key.ARROW_RIGHT, Key.ARROW_DOWN, Key.ENTER);
    await buyer.see(like("seats", language, "chose").source.slice(1, 5));
    await buyer.keys(Key.ARROW_RIGHT, " ");
    await buyer.find(like("seats", language, "remove-seat"), "button", 1);
    await buyer.accessible("the grid of a section");
    await signInByKeys(buyer, seats("sign-in-and-hold"));
    await buyer.find(seats("hold"));
    await buyer.find(like("seats", language, "remove-seat"), "button", 1);
    await buyer.tabTo(seats("hold"));
    await buyer.keys(Key.ENTER);
    await buyer.at(/^\/checkout\/\d+$/);
    const order = (await buyer.path()).split("/")[2];
    await buyer.find(like("checkout", language, "pay"), "button");
    await buyer.tabTo(like("checkout", language, "pay"));
    await buyer.keys(Key.ENTER);
    await buyer.wait(() => buyer.browser.executeScript(() => document.querySelector("button[name=action]") !== null), "the provider's page does not come");
    await buyer.tabTo("Pay");
    await buyer.keys(Key.ENTER);
    await buyer.at(`/checkout/${order}`);
    await buyer.see(checkout("done.paid"));
    await buyer.tabTo(checkout("to-tickets"));
    await buyer.keys(Key.ENTER);
    await buyer.at(`/my/tickets/${order}`);
    const { lines } = await it.engine.do(`/orders/${order}`, { as: buyer.name });
    assert.deepEqual(lines.flatMap((line) => line.tickets.map(({ seat }) => seat)).sort(), ["B-2-2", "B-2-3"]);
  });
}
