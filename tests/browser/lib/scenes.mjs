/** The pages in a state worth looking at: sales that sell, an order in each state, and how each page is shown. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { REPOSITORY } from "./chromium.mjs";
import { keepPlace, placeOf, setSession } from "./pages.mjs";
import { texts } from "./person.mjs";
import { roomHall } from "./sales.mjs";
import { chooseBest, openSection, pressSeat, saying } from "./steps.mjs";

const run = promisify(execFile);
const BUYER = "mei";

const file = (name) => JSON.parse(readFileSync(join(REPOSITORY, "sales", `${name}.json`), "utf8"));
const inMinutes = (minutes) => new Date(Date.now() + minutes * 60_000).toISOString();

/** 60,000 seats, as the pages' own measurements use them. */
async function stadium60000() {
  const { stdout } = await run(process.execPath, [join(REPOSITORY, "pages/tests/stadium-60000.mjs")], { maxBuffer: 1 << 26 });
  return JSON.parse(stdout);
}

/** Publishes sales and makes orders; gives what the scenes need of them. */
export async function prepare(engine, { isLarge = false } = {}) {
  const theatre = { ...file("theatre-old-quay"), opens_at: "2024-01-01T00:00:00.000Z", closes_at: "2099-12-31T23:59:59.000Z", pay_window_seconds: 600, refunds: { until: "2099-01-01T00:00:00.000Z", fee_percent: 5 } };
  delete theatre.room;
  const train = { ...file("demo-train"), pay_window_seconds: 600 };
  const stadium = isLarge ? await stadium60000() : { ...file("demo-stadium"), pay_window_seconds: 600 };
  const waiting = { ...file("demo-club"), sale: "club-draw", title: "Club Undertow: The Draw", pay_window_seconds: 600, opens_at: inMinutes(26), room: {} };
  theatre.gate = { ...theatre.gate, user_lock_ms: 100 };
  for (const sale of [theatre, train, stadium, waiting]) await engine.publish(sale);
  const tier = theatre.tiers[0].tier;
  const pending = await engine.order(theatre.sale, BUYER, { tier, best: { count: 2 } });
  const paid = await engine.paidOrder(theatre.sale, BUYER, { tier, best: { count: 2 } });
  for (const neighbour of ["an", "bo", "chen", "dora"]) await engine.order(theatre.sale, neighbour, { tier, best: { count: 2 } });
  const place = await engine.do(`/sales/${waiting.sale}/places`, { body: {}, as: BUYER });
  for (const other of ["an", "bo", "chen"]) await engine.do(`/sales/${waiting.sale}/places`, { body: {}, as: other });
  const kept = placeOf(waiting.sale, place, { title: waiting.title, tiers: waiting.tiers.map(({ name }) => name) });
  const { tickets } = await engine.do(`/orders/${paid.order}/tickets`, { as: BUYER });
  return { theatre, train, stadium, waiting, pending, paid, kept, codes: tickets.map(({ code }) => code) };
}

/** Every page, in a state that shows what it is for: its path, whose session it needs, and what is waited for. */
export function scenes({ theatre, train, stadium, waiting, pending, paid }) {
  const map = "[role=tab]:last-child";
  return [
    { name: "storefront", file: "index.html", path: "/", ready: "main a" },
    { name: "sale", file: "assets/sale.js", path: `/s/${waiting.sale}`, ready: "main .now" },
    { name: "room", file: "room.html", path: `/s/${waiting.sale}/room`, ready: "main .count", role: "buyers" },
    { name: "seats", file: "seats.html", path: `/s/${theatre.sale}/seats`, ready: "main form, main [role=tab]", role: "buyers" },
    { name: "map", file: null, path: `/s/${stadium.sale}/seats`, press: map, ready: ".map-host[data-ready=yes]", role: "buyers" },
    { name: "train", file: null, path: `/s/${train.sale}/seats`, press: map, ready: ".map-host[data-ready=yes]", role: "buyers" },
    { name: "checkout", file: "checkout.html", path: `/checkout/${pending.order}`, ready: "main input[type=radio]", role: "buyers" },
    { name: "orders", file: "orders.html", path: "/my/orders", ready: "main h2, main article", role: "buyers" },
    { name: "tickets", file: "tickets.html", path: `/my/tickets/${paid.order}`, ready: "main .ticket", role: "buyers" },
    { name: "operator", file: "operator.html", path: `/operator?sale=${theatre.sale}`, ready: "main section, main table, main form", role: "operators" },
    { name: "desk", file: "desk.html", path: "/operator/desk", ready: "main form", role: "operators" },
    { name: "exchange", file: null, path: `/s/${theatre.sale}/seats`, ready: "main [role=tab]", role: "buyers", act: reviewExchange },
    { name: "single", file: null, path: `/s/${theatre.sale}/seats`, ready: "main [role=tab]", role: "buyers", act: leaveSingle },
    { name: "room-waits", file: null, path: "/", ready: "main a", role: "buyers", act: waitWithoutMinutes },
    { name: "scan", file: "scan.html", path: `/scan?sale=${theatre.sale}`, ready: "main #code, main #door", role: "operators", act: letIn },
    // The last: what it sets stays.
    { name: "print", file: null, path: `/my/tickets/${paid.order}`, ready: "main .ticket", role: "buyers", act: printed },
  ];
}

/** Sets a door up, if it is not yet, and lets a ticket in. */
async function letIn(person, { codes }) {
  const t = texts("scan", person.language);
  if (await person.has(t("begin"))) {
    await person.type(t("door"), person.language === "zh" ? "北门 2" : "North 2");
    await person.press(t("begin"));
    await person.wait(() => person.browser.executeScript((name, wanted) => [...document.querySelectorAll("dt")].some((dt) => dt.textContent === name && dt.nextElementSibling.textContent === wanted), t("offline"), t("offline-yes")), "the page does not open without a network");
  }
  await person.type(t("code"), `${codes[person.language === "zh" ? 1 : 0]}\n`);
  await person.wait(() => person.browser.executeScript(() => document.querySelector(".outcome.yes, .outcome.no") !== null), "nothing is said to the code");
  await person.browser.executeScript(() => scrollTo(0, 0));
}

/** Gives a ticket of an order for another one, up to the dialog that asks whether to. */
async function reviewExchange(person, { theatre }) {
  const t = texts("seats", person.language);
  const [from, to] = ["stalls", "gallery"].map((id) => theatre.tiers.find(({ tier }) => tier === id));
  // A sale of its own, in which tickets are exchanged; the same for each window.
  const sale = `${theatre.sale}-swap`;
  await person.engine.publish({ ...theatre, sale, exchanges: { until: "2099-01-01T00:00:00.000Z", fee_minor: 200 } });
  const { order, lines: [{ tickets: [{ seat }] }] } = await person.engine.paidOrder(sale, BUYER, { tier: from.tier, best: { count: 1 } });
  const kept = { order, tickets: [{ tier: from.tier, seat }], worthMinor: from.price_minor - 200 };
  await person.browser.executeScript((key, value) => sessionStorage.setItem(key, value), `onsale.exchange.${sale}`, JSON.stringify(kept));
  await person.go(`/s/${sale}/seats`);
  await chooseBest(person, to.name, 1);
  await person.press(t("review"));
  await person.wait(async () => (await person.find(t("review.yes.one", { count: 1 }), "dialog button")).isEnabled(), "the exchange cannot be confirmed");
}

/** Chooses a seat by hand that leaves the end of its row alone. */
async function leaveSingle(person, { theatre }) {
  const [{ section, rows: [{ row }] }] = theatre.tiers.find(({ tier }) => tier === "gallery").sections;
  await person.press(texts("seats", person.language)("way.map"), "[role=tab]");
  await openSection(person, section);
  await pressSeat(person, row, "2");
  await person.see(saying("seats", person.language, "single-left"), ".single-seats");
  await person.browser.executeScript(() => {
    document.querySelector(".single-seats").scrollIntoView({ block: "start", behavior: "instant" });
    scrollBy({ top: -16, behavior: "instant" });
  });
}

/**
 * Waits at a place that is told no minutes: wide, one to which the stock may last; narrow, one that is served only if tickets
 * come back. Of sixty members of a room with forty tickets, one has such a place.
 */
async function waitWithoutMinutes(person, { waiting }) {
  const tiers = [{ tier: "floor", name: "Floor", price_minor: 5000, general_admission: 40 }];
  const { sale, ...file } = roomHall("waits", 45, { title: waiting.title, tiers });
  await person.engine.publish({ sale, ...file });
  const places = new Map();
  for (let member = 0; member < 60; member++) {
    const name = `waits-${member}`;
    places.set(name, placeOf(sale, await person.engine.do(`/sales/${sale}/places`, { body: {}, as: name }), { title: file.title, tiers: ["Floor"] }));
  }
  await person.engine.until(`/sales/${sale}/room`, ({ state, groups }) => state === "serving" && groups.every(({ lasts_to }) => lasts_to !== undefined));
  const t = texts("room", person.language);
  const waits = [t("wait.possible"), t("wait.unlikely")];
  const wanted = waits[person.width < 600 ? 1 : 0];
  for (const [name, place] of places) {
    await keepPlace(person.browser, place);
    await setSession(person.browser, await person.engine.token(name), name);
    await person.go(`/s/${sale}/room`);
    // Who is served goes on to the seats.
    const text = await person.wait(async () => {
      const main = await person.text("main");
      return ((await person.path()).endsWith("/seats") || waits.some((words) => main.includes(words))) && main;
    }, `${sale}: the room says nothing`);
    if (text.includes(wanted)) return;
    await person.go("/signed-in");
  }
  throw new Error(`nobody's place in ${sale} is told: ${wanted}`);
}

/** An A4 sheet at 96 dots an inch, as the page lays it out for print. */
async function printed(person) {
  await person.browser.sendDevToolsCommand("Emulation.setEmulatedMedia", { media: "print", features: [{ name: "prefers-color-scheme", value: "light" }] });
  await person.browser.sendDevToolsCommand("Emulation.setDeviceMetricsOverride", { width: 794, height: 1123, deviceScaleFactor: 1, mobile: false });
}

/** Shows a scene to somebody, whose session and place are put into the browser first. */
export async function show(person, scene, prepared) {
  const { kept } = prepared;
  await person.go("/signed-in");
  await keepPlace(person.browser, kept);
  if (scene.role) await person.haveSession(scene.role);
  await person.go(scene.path);
  const there = (css) => person.wait(() => person.browser.executeScript((selector) => document.querySelector(selector), css), `${scene.name}: there is no ${css}`);
  // What is there may not be shown yet: a page waits until it is known what its person holds.
  if (scene.press) await person.wait(async () => (await there(scene.press)).click().then(() => true), `${scene.name}: ${scene.press} cannot be pressed`);
  await there(scene.ready);
  await scene.act?.(person, prepared);
  if (scene.press) await person.browser.executeScript(() => document.querySelector(".map-frame")?.scrollIntoView({ block: "center", behavior: "instant" }));
}

/** Whose session and orders the scenes show. */
export { BUYER };
