/** The map under a finger and under a mouse, and what is said of a choice by hand. */
import assert from "node:assert/strict";
import { fixture } from "../lib/fixture.mjs";
import { texts } from "../lib/person.mjs";
import { hall } from "../lib/sales.mjs";
import { hold, like, openSection, pressSeat, saying } from "../lib/steps.mjs";

const { it, test } = fixture();

/** A hall so wide that a phone shows its seats with about 8 pixels. */
const wide = (name) => hall(name, { tiers: [
  { tier: "front", name: "Front", price_minor: 18000, sections: [{ section: "Floor", rows: [{ row: "B", to: "J", seats: { first: 1, count: 40 } }, { row: "A", seats: { first: 1, count: 40 } }] }] },
  { tier: "rear", name: "Rear", price_minor: 9900, sections: [{ section: "Floor", rows: [{ row: "K", to: "P", seats: { first: 1, count: 40 } }] }] },
] });

async function openMap(person, sale) {
  await person.go(`/s/${sale}/seats`);
  await person.press(texts("seats", person.language)("way.map"), "[role=tab]");
  const host = await person.wait(() => person.browser.findElement({ css: ".map-host[data-ready=yes]" }), "the map is not ready");
  await person.browser.executeScript((element) => element.scrollIntoView({ block: "center", behavior: "instant" }), host);
  return host;
}

const pitch = (person) => person.browser.executeScript(() => window.onsaleMap.pitchPixels);
const drawn = (person) => person.browser.executeScript(() => window.onsaleMap.drawn);

/** Waits until no frame is drawn any more. */
async function atRest(person) {
  let before = -1;
  await person.wait(async () => {
    const now = await drawn(person);
    const isSame = now === before;
    before = now;
    return isSame;
  }, "the map goes on moving");
}

test("a finger brings a section of small seats closer, and chooses with the next press", async (t) => {
  const file = wide("finger");
  await it.engine.publish(file);
  const person = await it.person(t, { name: "finger", width: 390, height: 780 });
  await person.browser.sendDevToolsCommand("Emulation.setTouchEmulationEnabled", { enabled: true });
  const host = await openMap(person, file.sale);
  const tap = async () => {
    const { x, y } = await person.browser.executeScript((element) => {
      const { left, top, width, height } = element.getBoundingClientRect();
      return { x: left + width / 2, y: top + height / 2 };
    }, host);
    await person.browser.sendDevToolsCommand("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ x, y }] });
    await person.browser.sendDevToolsCommand("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
    await atRest(person);
  };
  const chosen = () => person.browser.executeScript(() => document.querySelectorAll("ul.chosen li").length);
  await atRest(person);
  assert.ok((await pitch(person)) < 12);
  await tap();
  await person.see(saying("seats", "en", "section-title"), ".section-grid");
  assert.equal(await chosen(), 0);
  assert.ok((await pitch(person)) >= 24);
  await tap();
  await person.wait(async () => (await chosen()) === 1, "the second press does not choose");
  assert.deepEqual(await person.complaints(), []);
});

test("a mouse is told what a seat is, beside the seat, and nothing is drawn for it", async (t) => {
  const words = texts("seats", "en");
  const file = wide("hover");
  await it.engine.publish(file);
  const person = await it.person(t, { name: "hover" });
  const host = await openMap(person, file.sale);
  await atRest(person);
  const frames = await drawn(person);
  await person.browser.actions().move({ origin: host, x: 20, y: 0 }).perform();
  const tip = await person.see(/row ([A-P]), seat \d+ (Front|Rear) · CN¥(180|99)\.00 · free/, ".seat-tip");
  assert.equal(tip[2] === "Front", tip[1] < "K");
  const covers = () => person.browser.executeScript((element) => {
    const [seat, said] = [element.getBoundingClientRect(), document.querySelector(".seat-tip").getBoundingClientRect()];
    const [x, y] = [seat.left + seat.width / 2 + 20, seat.top + seat.height / 2];
    return { isOver: x >= said.left && x <= said.right && y >= said.top && y <= said.bottom, isHidden: document.querySelector(".seat-tip").ariaHidden };
  }, host);
  assert.deepEqual(await covers(), { isOver: false, isHidden: "true" });
  assert.equal(await drawn(person), frames, "the map was drawn anew");
  await person.browser.actions().move({ origin: host, x: 0, y: 0 }).move({ x: 5, y: 5 }).perform();
  await person.wait(() => person.browser.executeScript(() => document.querySelector(".seat-tip") === null), "the words stay");
  // Sections of one name differ.
  await person.see(words("section-left", { section: "Floor, Rear, CN¥99.00", count: "240" }), "#section");
  assert.deepEqual(await person.complaints(), []);
});

test("a choice by hand that leaves a single seat is told so, may take that seat instead, and is held as it is", async (t) => {
  // A row of five: seat 2 leaves seat 1 alone.
  const row = { row: "1", seats: { prefix: "S-1-", first: 1, count: 5 } };
  const file = hall("single", { tiers: [{ tier: "one", name: "One", price_minor: 9900, sections: [{ section: "S", rows: [row] }] }] });
  await it.engine.publish(file);
  const person = await it.person(t, { name: "single" });
  await person.haveSession();
  const notes = () => person.text(".single-seats");
  const silent = (why) => person.wait(async () => (await notes()) === "", `there is still a note ${why}`);
  for (const [language, sizes] of [["en", [[1280, 900], [390, 780]]], ["zh", [[390, 780], [1280, 900]]]]) {
    person.language = language;
    await person.go(`/s/${file.sale}/seats`);
    await person.press(texts("seats", language)("way.map"), "[role=tab]");
    await openSection(person, "S");
    for (const [width, height] of sizes) {
      await person.resize(width, height);
      await pressSeat(person, "1", "2");
      await person.see(saying("seats", language, "single-left"), ".single-seats");
      await person.fits();
      await pressSeat(person, "1", "1");
      await silent("beside both seats of the end");
      await pressSeat(person, "1", "1", "chosen");
      await person.see(saying("seats", language, "single-left"), ".single-seats");
      if (width === sizes[0][0]) await person.accessible(`a seat stays alone (${language})`);
      await person.press(like("seats", language, "single-instead"), ".single-seats button");
      await silent("with the seat that was left alone");
      await pressSeat(person, "1", "1", "chosen");
      assert.equal(await notes(), "", "nothing is chosen");
    }
  }
  await pressSeat(person, "1", "2");
  await person.see(saying("seats", person.language, "single-left"), ".single-seats");
  const order = await hold(person);
  const { lines: [{ tickets }] } = await it.engine.do(`/orders/${order}`, { as: person.name });
  assert.deepEqual(tickets.map(({ seat }) => seat), ["S-1-2"]);
  assert.deepEqual(await person.complaints(), []);
});
