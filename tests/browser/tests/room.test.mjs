/** The waiting room: its states, what it survives, and what the operator makes it say. */
import assert from "node:assert/strict";
import { fixture } from "../lib/fixture.mjs";
import { texts } from "../lib/person.mjs";
import { keepPlace, placeOf, violations } from "../lib/pages.mjs";
import { roomHall, SCRIPT } from "../lib/sales.mjs";

const { it, test } = fixture();

/** Joins by the API, and keeps the place as the sale's page does. */
async function join(person, sale) {
  const place = await it.engine.do(`/sales/${sale}/places`, { body: {}, as: person.name });
  await person.go(`/s/${sale}/room`);
  await keepPlace(person.browser, placeOf(sale, place));
  await person.haveSession();
  await person.go(`/s/${sale}/room`);
}

/** When it is due the room goes on by itself, once: back in the room, it waits to be told. */
async function comeBackWhenDue(person, sale) {
  await person.at(`/s/${sale}/seats`);
  await person.browser.navigate().back();
  await person.at(`/s/${sale}/room`);
  await person.see(texts("room", person.language)("due"));
}

/** Waits until the room is in a state, by the API: then a page that asks is told of it. */
const state = (sale, ...states) => it.engine.until(`/sales/${sale}/room`, (room) => states.includes(room.state));

for (const [language, options] of [["en", {}], ["zh", { width: 320, height: 640, dark: true }]]) {
  test(`a place goes from joined to due, and can be checked (${language})`, async (t) => {
    const t_ = texts("room", language);
    const buyer = await it.person(t, { language, name: `room-${language}`, ...options });
    const later = roomHall("later", 1800);
    await it.engine.publish(later);
    await join(buyer, later.sale);
    await buyer.see(t_("joined"));
    await buyer.accessible("joined");
    const file = roomHall("room", 4);
    await it.engine.publish(file);
    await join(buyer, file.sale);
    await comeBackWhenDue(buyer, file.sale);
    await buyer.accessible("due");
    await buyer.press(t_("check"));
    await buyer.press(t_("check.go"));
    await buyer.see(t_("check.right", { place: "1" }));
    await buyer.accessible("checked");
    await buyer.browser.navigate().refresh();
    await buyer.see(t_("due"));
    assert.deepEqual(await buyer.complaints(), []);
    await buyer.fits();
  });
}

/**
 * Runs in a page before its own scripts: the answer to the beginning of a visit comes just when the clock of the turn has
 * been drawn anew, before what is done after drawing. A busy machine brings that about now and then. `visits` has the
 * status of each request, null while there is no answer.
 */
const ANSWERED_WHILE_DRAWING = `{
  const ask = window.fetch;
  window.visits = [];
  // What is pressed draws the page too: the clock alone does so later.
  let draws = 0;
  const drawn = () => new Promise((resolve) => {
    const observer = new MutationObserver(() => {
      if (++draws < 3) return;
      observer.disconnect();
      resolve();
    });
    observer.observe(document.querySelector(".turn"), { subtree: true, characterData: true, childList: true });
  });
  window.fetch = async (...args) => {
    if (!(args[0].url ?? String(args[0])).endsWith("/visits")) return ask(...args);
    const at = window.visits.push(null) - 1;
    const answer = await ask(...args);
    window.visits[at] = answer.status;
    const body = await answer.text();
    // Nothing that follows waits for anything else.
    const known = Object.assign(new Response(null, answer), { text: async () => body, json: async () => JSON.parse(body) });
    await drawn();
    return known;
  };
}`;

/** Moves the end of the visit that a browser keeps: to so many seconds from now, or to a time in milliseconds. */
const endVisit = (person, sale, { inSeconds, atMs }) => person.browser.executeScript((key, seconds, ms) => {
  const kept = JSON.parse(localStorage.getItem(key));
  localStorage.setItem(key, JSON.stringify({ ...kept, endsAtMs: ms ?? Date.now() + seconds * 1_000 }));
  return kept.endsAtMs;
}, `onsale.visit.${sale}`, inSeconds ?? null, atMs ?? null);

for (const [language, options] of [["en", {}], ["zh", { width: 320, height: 640, dark: true }]]) {
  test(`the first use of the seats page begins the visit, whose clock is shown (${language})`, async (t) => {
    const words = texts("seats", language);
    const buyer = await it.person(t, { language, name: `turn-${language}`, ...options });
    await buyer.before(ANSWERED_WHILE_DRAWING);
    // Longer than a test may take: a slow machine loses no place.
    const file = roomHall(`turn-${language}`, 4, {}, { show_up_seconds: 3_000, visit_seconds: 3_000 });
    await it.engine.publish(file);
    await join(buyer, file.sale);
    await buyer.at(`/s/${file.sale}/seats`);
    await buyer.see(words("turn.unused"));
    await buyer.see(/ 4\d:\d\d/);
    await buyer.accessible("due and not used");
    // Without what a busy engine could not answer, which is repeated.
    const visits = () => buyer.browser.executeScript(() => window.visits.filter((status) => status === null || status === 200).length);
    assert.equal(await visits(), 0, "a page that nobody uses is no visit");
    await buyer.press(words("way.map"));
    await buyer.see(words("turn.visit"));
    assert.equal(await visits(), 1, "one request begins a visit");
    // The warning comes two minutes before the end. A machine that is slower than that moves the end again.
    const endsAtMs = await endVisit(buyer, file.sale, { inSeconds: 110 });
    await buyer.wait(async () => {
      await endVisit(buyer, file.sale, { inSeconds: 110 });
      return (await buyer.text()).includes(words("turn.ending"));
    }, "nothing warns of the end");
    await buyer.accessible("the end is near");
    await endVisit(buyer, file.sale, { atMs: endsAtMs });
    await buyer.browser.navigate().refresh();
    await buyer.see(words("turn.visit"));
    assert.equal(await visits(), 0, "the clock stays when the page is loaded again");
    await buyer.fits();
  });
}

test("the gates refuse within two seconds of a pause, and the room says so with its next poll", async (t) => {
  const t_ = texts("room", "en");
  const buyer = await it.person(t, { name: "paused" });
  const file = roomHall("paused", 3);
  await it.engine.publish(file);
  await join(buyer, file.sale);
  await comeBackWhenDue(buyer, file.sale);
  const kept = JSON.parse(await buyer.browser.executeScript((key) => localStorage.getItem(key), `onsale.place.${file.sale}`));
  await it.engine.command(file.sale, { command: "notice", notice: `Back soon ${SCRIPT}` });
  await it.engine.command(file.sale, { command: "pause" });
  const pausedMs = Date.now();
  const body = { tickets: 1, place: { group: kept.group, place: kept.place, token: kept.token } };
  let refused;
  do {
    refused = await it.engine.ask(`/sales/${file.sale}/admissions`, { body, as: "paused" });
  } while (!String(refused.document.type).endsWith("room-paused") && Date.now() < pausedMs + 2000);
  assert.match(refused.document.type, /room-paused$/);
  await buyer.see(t_("paused"));
  await buyer.see("Back soon <img");
  assert.equal(await buyer.browser.executeScript("return window.hacked"), null);
  await buyer.accessible("paused");
  await it.engine.command(file.sale, { command: "resume" });
  await buyer.notSee(t_("paused"));
  await it.engine.command(file.sale, { command: "close" });
  await buyer.see(t_("closed"));
});

test("without a network the place is kept, and the page goes on when it is back", async (t) => {
  const t_ = texts("room", "en");
  const buyer = await it.person(t, { name: "offline" });
  const file = roomHall("offline", 15);
  await it.engine.publish(file);
  await join(buyer, file.sale);
  await buyer.see(t_("joined"));
  await buyer.offline(true);
  await buyer.see(t_("offline"));
  await buyer.accessible("offline");
  await state(file.sale, "serving");
  await buyer.offline(false);
  await comeBackWhenDue(buyer, file.sale);
});

test("a clock that is an hour wrong counts down to the same moment", async (t) => {
  const t_ = texts("room", "en");
  const file = roomHall("clock", 1800);
  await it.engine.publish(file);
  for (const by of [3_600_000, -3_600_000]) {
    const buyer = await it.person(t, { name: "clock" });
    await buyer.wrongClock(by);
    await join(buyer, file.sale);
    await buyer.see(t_("joined"));
    await buyer.see(/ 2\d:\d\d /);
    await buyer.finish();
  }
});

test("where storage is forbidden the room says so, and where there is no place it leads to the sale", async (t) => {
  const t_ = texts("room", "en");
  const file = roomHall("stores", 600, { title: SCRIPT });
  await it.engine.publish(file);
  const buyer = await it.person(t, { name: "stores" });
  await buyer.go(`/s/${file.sale}/room`);
  await buyer.see(t_("none"));
  await buyer.accessible("no place");
  await buyer.withoutStorage();
  await buyer.go(`/s/${file.sale}/room`);
  await buyer.see(t_("forgetful"));
  assert.equal(await buyer.browser.executeScript("return window.hacked"), null);
  await buyer.go("/s/there-is-none/room");
  await buyer.see(new RegExp([t_("gone"), t_("none")].join("|")));
});

test("without JavaScript the room leads to a page that loads itself anew, and says the same", async (t) => {
  const file = roomHall("plain", 3600, { title: SCRIPT });
  await it.engine.publish(file);
  const reader = await it.person(t, { name: "plain" });
  await reader.browser.sendDevToolsCommand("Emulation.setScriptExecutionDisabled", { value: true });
  await reader.go(`/s/${file.sale}/room`);
  await reader.see("Joining, and seeing your place, need JavaScript.");
  await reader.browser.findElement({ css: "noscript a" }).click();
  await reader.at(`/s/${file.sale}/room/plain`);
  await reader.see("<img src=x");
  const refresh = await reader.browser.findElement({ css: "meta[http-equiv=refresh]" }).getAttribute("content");
  assert.ok(Number(refresh) >= 15, refresh);
  // axe is a script.
  await reader.browser.sendDevToolsCommand("Emulation.setScriptExecutionDisabled", { value: false });
  await reader.browser.navigate().refresh();
  // A page that loads itself anew takes what people were reading: WCAG 2.2.1 allows that of real-time events alone.
  assert.deepEqual((await violations(reader.browser)).filter((line) => !line.startsWith("meta-refresh:")), []);
  await reader.fits();
});
