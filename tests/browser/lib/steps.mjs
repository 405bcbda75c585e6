/** The steps of a purchase, as somebody takes them who reads the page: by what buttons and links are called. */
import { texts } from "./person.mjs";

/** A pattern of a text of a page: what is not given may be anything. */
export function like(page, language, key, values = {}) {
  const t = texts(page, language);
  const hole = "\u0000";
  const text = t(key, new Proxy(values, { get: (all, name) => all[name] ?? hole, has: () => true }));
  return new RegExp(`^${text.split(hole).map((part) => part.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join(".+")}$`);
}

/** The same, anywhere in what is visible. */
export const saying = (page, language, key, values) => new RegExp(like(page, language, key, values).source.slice(1, -1), "u");

/** From the storefront to the page of a sale. */
export async function findSale(person, file) {
  const t = texts("index", person.language);
  await person.go("/");
  await person.see(file.title.slice(0, 20));
  await person.type(t("search.title"), file.title);
  await person.press(new RegExp(file.title), "main a");
  await person.at(`/s/${file.sale}`);
}

/** Signs in on the page of a sale with a waiting room, and joins. */
export async function joinRoom(person, sale) {
  const t = texts("sale", person.language);
  await person.signIn(t("step.sign-in"));
  await person.press(t("step.join"));
  await person.at(`/s/${sale}/room`);
}

/** Waits in the room until it goes on to the seats by itself. */
export const waitForTurn = (person, sale) => person.at(`/s/${sale}/seats`);

/** How many seats are chosen. */
const chosen = (person) => person.browser.executeScript((name) => [...document.querySelectorAll("button")].filter((button) => new RegExp(name, "u").test(button.getAttribute("aria-label") ?? "")).length, like("seats", person.language, "remove-seat").source);

/** Chooses seats by pressing the canvas of the map. */
export async function chooseOnMap(person, count) {
  const t = texts("seats", person.language);
  await person.press(t("way.map"), "[role=tab], button, input");
  const host = await person.wait(() => person.browser.findElement({ css: ".map-host[data-ready=yes]" }), "the map is not ready");
  await person.browser.executeScript((element) => element.scrollIntoView({ block: "center" }), host);
  const { width, height } = await host.getRect();
  for (let at = 0; (await chosen(person)) < count; at++) {
    if (at > 60) throw new Error(`pressing the map all over has chosen ${await chosen(person)} of ${count} seats`);
    const [x, y] = [((at % 5) - 2) * 0.06, (Math.floor(at / 5) % 12) * 0.061 - 0.3];
    await person.browser.actions().move({ origin: host, x: Math.round(x * width), y: Math.round(y * height) }).press().release().perform();
  }
}

/** Presses a free or a chosen seat in the grid of the section that is open. */
export const pressSeat = (person, row, seat, state = "free") =>
  person.press(like("seats", person.language, "seat-in-row", { row, seat, state: texts("seats", person.language)(`state-of.${state}`) }), "[role=gridcell] button");

/** Opens a section in the list beside the map, once the map shows what is free. */
export async function openSection(person, section) {
  await person.wait(() => person.browser.executeScript((name) => {
    const list = document.querySelector("#section");
    const option = [...(list?.options ?? [])].find(({ text }) => text.startsWith(name));
    if (option === undefined || document.querySelector(".map-host[data-ready=yes]") === null) return false;
    list.value = option.value;
    list.dispatchEvent(new Event("change", { bubbles: true }));
    return true;
  }, section), `there is no section ${section}`);
  await person.see(texts("seats", person.language)("section-title", { section }), ".section-grid");
}

/** Chooses the best seats of a category. */
export async function chooseBest(person, tier, count) {
  const t = texts("seats", person.language);
  await person.press(t("way.best"), "[role=tab], button, input");
  if (tier !== undefined) await person.press(new RegExp(`^${tier}`), "input[type=radio]");
  for (;;) {
    const now = Number(await person.wait(async () => /^\d+$/m.exec(await person.text("main output, main .counter"))?.[0], "there is no count"));
    if (now === count) return;
    await person.press(new RegExp(`: ${t(now < count ? "more" : "fewer")}$`), "button");
  }
}

/** Holds what is chosen, and gives the number of the order. */
export async function hold(person) {
  await person.press(texts("seats", person.language)("hold"));
  await person.at(/^\/checkout\/\d+$/);
  return (await person.path()).split("/")[2];
}

/** Leaves for the page of a provider. */
export async function openProvider(person, provider = "stripe") {
  const t = texts("checkout", person.language);
  await person.press(new RegExp(t(`provider.${provider}`).replace(/[()]/g, "\\$&")), "input[type=radio]");
  await person.press(like("checkout", person.language, "pay"), "button");
}

/** Pays on the provider's page, or leaves it (`leave`); is back at the checkout then. */
export async function payAtProvider(person, action = "pay", provider = "stripe") {
  const order = (await person.path()).split("/")[2];
  await openProvider(person, provider);
  await actAtProvider(person, action, order);
}

/** Presses a button of the provider's page. After `refuse` somebody is still there, and told. */
export async function pressAtProvider(person, action) {
  const button = await person.wait(() => person.browser.findElement({ css: `button[name=action][value=${action}]` }), "the provider's page does not come");
  await button.click();
}

/** Presses a button of the provider's page that leads back to the checkout. */
export async function actAtProvider(person, action, order) {
  await pressAtProvider(person, action);
  await person.at(`/checkout/${order}`);
}

/** From a paid checkout to the tickets. */
export async function openTickets(person, order) {
  const t = texts("checkout", person.language);
  await person.see(t("done.paid"));
  await person.press(t("to-tickets"));
  await person.at(`/my/tickets/${order}`);
}
