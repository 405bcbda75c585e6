/** Stations by a part of their name: by keyboard, by tap, without a network, and where a part matches two hundred. */
import assert from "node:assert/strict";
import { Key } from "selenium-webdriver";
import { fixture } from "../lib/fixture.mjs";
import { texts } from "../lib/person.mjs";
import { hall } from "../lib/sales.mjs";

const { it, test } = fixture();

/** A train of stops with names, of a day of its own. */
function train(name, day, stops, changes = {}) {
  const times = (index) => ({ ...(index > 0 ? { arrives: `${String(8 + Math.floor(index / 10)).padStart(2, "0")}:${10 + (index % 10)}` } : { departs: "08:05" }) });
  return hall(name, {
    title: `Train ${name}`, runs_on: day, stops: stops.map(([stop, label], index) => ({ stop, name: label, ...times(index) })),
    tiers: [{ tier: "second", name: "Second", price_minor: 4200, general_admission: 40 }], ...changes,
  });
}

/** What the field's list is, for who sees it and for who hears it. */
const listOf = (person, id) => person.browser.executeScript((field) => {
  const input = document.getElementById(field);
  const list = document.getElementById(input.getAttribute("aria-controls") ?? "");
  const options = [...(list?.querySelectorAll("[role=option]") ?? [])];
  return {
    expanded: input.getAttribute("aria-expanded"), value: input.value, options: options.map((one) => one.firstChild.textContent),
    active: options.filter((one) => one.getAttribute("aria-selected") === "true" && one.id === input.getAttribute("aria-activedescendant")).map((one) => one.firstChild.textContent),
    rest: list?.parentElement.querySelector("p")?.textContent ?? "",
  };
}, id);

/** Waits until the field's list is so. */
async function listIs(person, id, wanted) {
  let found;
  await person.wait(async () => {
    found = await listOf(person, id);
    return Object.entries(wanted).every(([key, value]) => JSON.stringify(found[key]) === JSON.stringify(value));
  }, async () => `the list is ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`);
}

const setDate = (person, day) => person.browser.executeScript((value) => {
  const field = document.getElementById("train-date");
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}, day);

for (const [language, day, window] of [["en", "2026-11-21", {}], ["zh", "2026-11-22", { width: 320, height: 780, dark: true }]]) {
  test(`a station is found by a part of its name, by keyboard and by tap (${language})`, async (t) => {
    const index = texts("index", language);
    const file = train(`stations-${language}`, day, [["8503000", "Zürich HB"], ["8500010", "Basel SBB"], ["5102617", "Łódź Fabryczna"], ["VNP", "北京南"]]);
    await it.engine.publish(file);
    const person = await it.person(t, { language, name: `stations-${language}`, ...window });
    await person.go("/");
    const requests = () => person.browser.executeScript("return performance.getEntriesByType('resource').filter(({ name }) => name.includes('/stops')).length");
    await person.find(index("trains.find"), "button");
    await setDate(person, day);
    assert.equal(await requests(), 0, "nothing is loaded until a field is used");

    await person.type(index("trains.from"), "zurich");
    await listIs(person, "train-from", { expanded: "true", options: ["Zürich HB"], active: [] });
    await person.accessible("the start page, with suggestions");
    await person.fits();
    await person.keys(Key.ESCAPE);
    await listIs(person, "train-from", { expanded: "false", value: "zurich" });
    await person.keys(Key.ARROW_DOWN, Key.ARROW_DOWN);
    await listIs(person, "train-from", { expanded: "true", active: ["Zürich HB"] });
    await person.keys(Key.ENTER);
    await listIs(person, "train-from", { expanded: "false", value: "Zürich HB" });
    assert.equal(await person.focused(), index("trains.from"), "the focus stays in the field");

    await person.type(index("trains.to"), "京");
    await listIs(person, "train-to", { options: ["北京南"] });
    await person.press(/^北京南/, "[role=option]");
    await listIs(person, "train-to", { expanded: "false", value: "北京南" });
    assert.equal(await requests(), 1, "a day is one request");
    await person.press(index("trains.find"), "button");
    await person.see(file.title, "main [aria-live] h3");
    await person.type(index("trains.to"), "lodz");
    await listIs(person, "train-to", { options: ["Łódź Fabryczna"] });
    await person.type(index("trains.to"), "8500010");
    await listIs(person, "train-to", { options: ["Basel SBB"] });

    // The list of sales says when and where it leaves, by the clock there.
    await person.type(index("search.title"), `stations-${language} zurich`);
    await person.see(`Zürich HB → 北京南`, ".sale");
    await person.see({ en: "Sat 21 Nov 2026, 08:05", zh: "2026年11月22日周日 08:05" }[language], ".sale .day");
    await person.accessible("the start page, with a train");
    await person.fits();
    assert.deepEqual(await person.complaints(), []);
  });
}

test("a part that matches two hundred stations shows some, and says how many more", async (t) => {
  const index = texts("index", "en");
  const day = "2026-11-23";
  for (let first = 0; first < 200; first += 50) {
    await it.engine.publish(train(`neustadt-${first}`, day, Array.from({ length: 50 }, (_, at) => [`n${first + at}`, `Neustadt ${first + at}`])));
  }
  const person = await it.person(t, { width: 320, height: 780 });
  await person.go("/");
  await person.find(index("trains.find"), "button");
  await setDate(person, day);
  await person.type(index("trains.from"), "neu");
  const rest = index("stops.more.other", { count: 192 });
  await person.wait(async () => (await listOf(person, "train-from")).rest === rest, `${rest} is not said`);
  assert.equal((await listOf(person, "train-from")).options.length, 8);
  await person.see(index("stops.many", { count: 200 }), ".live");
  await person.accessible("the start page, with many suggestions");
  await person.fits();
  await person.keys(" 177");
  await listIs(person, "train-from", { options: ["Neustadt 177"], rest: "" });
  // A key beyond the last option is back at what was typed, which Enter sends.
  await person.keys(Key.ARROW_DOWN, Key.ARROW_DOWN);
  await listIs(person, "train-from", { active: [], value: "neu 177" });
});

test("without suggestions a name that is typed in full finds its trains", async (t) => {
  const index = texts("index", "en");
  const day = "2026-11-24";
  const file = train("plain", day, [["A", "Wien Hbf"], ["B", "Linz"]]);
  await it.engine.publish(file);
  const person = await it.person(t);
  await person.go("/");
  await person.find(index("trains.find"), "button");
  await setDate(person, day);
  await person.offline(true);
  await person.type(index("trains.from"), "wien hbf");
  await person.type(index("trains.to"), "B");
  await listIs(person, "train-to", { expanded: "false", options: [] });
  await person.offline(false);
  // The next use of a field loads what was not to be had.
  await person.type(index("trains.from"), "wien hbf");
  await listIs(person, "train-from", { expanded: "true", options: ["Wien Hbf"] });
  await person.keys(Key.ENTER);
  await person.see(file.title, "main [aria-live] h3");
});
