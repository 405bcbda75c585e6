/** How people are told of what changes: reminders of a turn, and what a screen reader hears of pages that count. */
import assert from "node:assert/strict";
import { fixture } from "../lib/fixture.mjs";
import { texts } from "../lib/person.mjs";
import { KEEPS_FILES, keepPlace, placeOf } from "../lib/pages.mjs";
import { hall, roomHall } from "../lib/sales.mjs";
import { chooseBest } from "../lib/steps.mjs";

const { it, test } = fixture();
const PHONE = { width: 320, height: 640, dark: true };

/** Keeps a place of a sale in the browser, as its page does after joining, and opens the room. */
async function waitInRoom(person, sale, changes = {}) {
  const place = await it.engine.do(`/sales/${sale}/places`, { body: {}, as: person.name });
  await person.go("/signed-in");
  await keepPlace(person.browser, placeOf(sale, place, { title: "Evening", ...changes }));
  await person.haveSession();
  await person.go(`/s/${sale}/room`);
}

/** From now on the room document is changed by a function, which is given as its source and gets the number of the request too. */
const changedRoom = (person, change) => person.before(`{
  const ask = window.fetch;
  let asked = 0;
  window.fetch = async (...args) => {
    const answer = await ask(...args);
    if (!/\\/api\\/sales\\/[^/]+\\/room$/.test(args[0].url ?? String(args[0])) || !answer.ok) return answer;
    const room = await answer.json();
    (${change})(room, asked++);
    return new Response(JSON.stringify(room), { headers: { "Content-Type": "application/json" } });
  };
}`);

/** From now on the page keeps what it asks the browser for: permissions, notifications, locks and sounds. */
const ASKED = `
  window.asked = { permissions: 0, notifications: [], tones: 0 };
  window.locks = [];
  window.Notification = class extends Notification {
    static async requestPermission() { window.asked.permissions++; return Notification.permission; }
    constructor(title, options) {
      super(title, options);
      if (!options.silent) { window.asked.notifications.push(title); window.notification = this; }
    }
  };
  const lock = navigator.wakeLock.request.bind(navigator.wakeLock);
  navigator.wakeLock.request = async (kind) => { const held = await lock(kind); window.locks.push(held); return held; };
  const start = OscillatorNode.prototype.start;
  OscillatorNode.prototype.start = function (...args) { window.asked.tones++; return start.apply(this, args); };
`;

/** Whether somebody looks at the page: to the page it is as if they had gone to another one, or come back. */
const look = (person, isLooking) => person.browser.executeScript((hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}, !isLooking);

for (const [language, options] of [["en", {}], ["zh", PHONE]]) {
  test(`who waits chooses how to be told, and is told when the turn comes (${language})`, async (t) => {
    const [room, words] = ["room", "reminders"].map((page) => texts(page, language));
    const buyer = await it.person(t, { language, name: `told-${language}`, ...options });
    await buyer.before(ASKED);
    await changedRoom(buyer, `(room) => { if (!sessionStorage.getItem("served")) room.groups.forEach((group) => { group.serving = 0; }); }`);
    const { origin } = new URL(it.engine.url);
    await buyer.browser.sendDevToolsCommand("Browser.setPermission", { origin, permission: { name: "notifications" }, setting: "denied" });
    const file = roomHall(`told-${language}`, 2, {}, { show_up_seconds: 3_000, visit_seconds: 3_000 });
    await it.engine.publish(file);
    await waitInRoom(buyer, file.sale);
    await it.engine.until(`/sales/${file.sale}/room`, ({ groups }) => groups[0].serving > 0);
    await buyer.see(room("waiting"));
    await buyer.press(room("remind"));
    await buyer.see(words("phone"));
    const asked = () => buyer.browser.executeScript(() => window.asked);
    assert.deepEqual(await asked(), { permissions: 0, notifications: [], tones: 0 }, "nothing is asked for until it is chosen");
    assert.equal(await buyer.browser.executeScript(() => window.locks.length + document.querySelectorAll("fieldset input:checked").length), 0);
    await buyer.accessible("reminders");
    await buyer.fits();

    await buyer.press(words("notify"), "fieldset input");
    await buyer.see(words("denied"));
    assert.equal((await asked()).permissions, 1);
    assert.equal(await buyer.browser.executeScript(() => document.querySelectorAll("fieldset input:checked").length), 0, "what is denied is not shown as chosen");
    await buyer.browser.sendDevToolsCommand("Browser.setPermission", { origin, permission: { name: "notifications" }, setting: "granted" });
    await buyer.press(words("notify"), "fieldset input");
    await buyer.notSee(words("denied"));
    await buyer.press(words("sound"), "fieldset input");
    await buyer.wait(async () => (await asked()).tones === 1, "nobody hears what the sound will be like");

    // The screen stays on while the page is looked at: given back with it, taken again with it.
    const locks = () => buyer.browser.executeScript(() => window.locks.map(({ released }) => released));
    await buyer.press(words("awake"), "fieldset input");
    await buyer.wait(async () => String(await locks()) === "false", "the screen goes off");
    await buyer.browser.executeScript(() => window.locks[0].release());
    await look(buyer, false);
    // The page goes on meanwhile: it has new figures.
    await buyer.changes("main > p.soft", 1);
    assert.deepEqual(await locks(), [true], "no lock is asked for while nobody looks");
    await look(buyer, true);
    await buyer.wait(async () => String(await locks()) === "true,false", "the lock is not taken again");
    await buyer.press(words("awake"), "fieldset input");
    await buyer.wait(async () => String(await locks()) === "true,true", "the screen stays on though nobody wants it");
    await buyer.press(words("awake"), "fieldset input");
    await buyer.wait(async () => String(await locks()) === "true,true,false", "the lock is not taken again");
    await buyer.accessible("reminders chosen");
    await buyer.fits();

    // The turn comes while the person is elsewhere.
    await look(buyer, false);
    await buyer.browser.executeScript(() => sessionStorage.setItem("served", "yes"));
    await buyer.wait(async () => (await asked()).notifications.length > 0, "nobody is told of the turn");
    assert.deepEqual(await asked(), { permissions: 2, notifications: [words("turn")], tones: 2 });
    assert.match(await buyer.browser.getTitle(), /^● /);
    await buyer.see(room("due"));
    assert.equal(await buyer.path(), `/s/${file.sale}/room`, "nobody is sent on who does not look");
    await buyer.wait(async () => String(await locks()) === "true,true,true", "the screen stays on though the turn has come");
    assert.deepEqual(await buyer.complaints(), []);
    await look(buyer, true);
    await buyer.at(`/s/${file.sale}/seats`);
  });
}

test("the opening is put into the calendar, and who closes the room is told what that means", async (t) => {
  const [room, words] = ["room", "reminders"].map((page) => texts(page, "en"));
  const buyer = await it.person(t, { name: "calendar" });
  await buyer.before(KEEPS_FILES);
  const file = roomHall("calendar", 1800);
  await it.engine.publish(file);
  await waitInRoom(buyer, file.sale);
  await buyer.see(room("joined.text"));
  await buyer.press(room("remind"));
  await buyer.press(words("calendar"));
  const saved = await buyer.wait(() => buyer.browser.executeScript(() => window.saved[0]), "no file is saved");
  const starts = `${file.opens_at.slice(0, 19).replace(/[-:]/g, "")}Z`;
  for (const line of [`DTSTART:${starts}`, "TRIGGER:-PT5M"]) assert.ok(saved.split("\r\n").includes(line), saved);
  assert.ok(saved.replace(/\r\n /g, "").includes(`/s/${file.sale}/room`), saved);
});

test("where the reminders do not come, the room says so and goes on", async (t) => {
  const room = texts("room", "en");
  const buyer = await it.person(t, { name: "no-reminders" });
  const file = roomHall("no-reminders", 1800);
  await it.engine.publish(file);
  await waitInRoom(buyer, file.sale);
  await buyer.see(room("joined"));
  await buyer.offline(true);
  await buyer.press(room("remind"));
  await buyer.see(room("failing"));
  await buyer.wait(() => buyer.has(room("remind")), "the button is gone");
  await buyer.see(/ 2\d:\d\d /);
});

test("a screen reader hears a countdown begin and nothing of its seconds, and keeps its place on the page", async (t) => {
  const room = texts("room", "en");
  const buyer = await it.person(t, { name: "hears" });
  await buyer.hear();
  const file = roomHall("hears", 1800);
  await it.engine.publish(file);
  await waitInRoom(buyer, file.sale);
  await buyer.see(room("joined.text"));
  await buyer.settled();
  const before = await buyer.heard();
  assert.equal(before.at(-1), room("joined"));
  // Where a reader has stopped: an element that is replaced takes their place with it.
  await buyer.browser.executeScript(() => (window.reading = [...document.querySelectorAll("main p, main h2")].filter((one) => one.getClientRects().length > 0)));
  await buyer.changes(".count", 3);
  assert.deepEqual(await buyer.heard(), before);
  assert.deepEqual(await buyer.browser.executeScript(() => window.reading.filter((one) => !one.isConnected).map((one) => one.textContent)), []);

  await buyer.go(`/s/${file.sale}`);
  await buyer.see(/ 2\d:\d\d /);
  await buyer.settled();
  const onSale = await buyer.heard();
  await buyer.changes(".count", 3);
  assert.deepEqual(await buyer.heard(), onSale);
});

test("a screen reader hears how the wait goes on once a minute, not with each answer", async (t) => {
  const room = texts("room", "en");
  const buyer = await it.person(t, { name: "hears-waiting" });
  await buyer.hear();
  await changedRoom(buyer, `(room, asked) => {
    Object.assign(room, { state: "serving", opens_at: "2024-01-01T00:00:00.000Z", poll: { min_seconds: 1, max_seconds: 1, jitter_percent: 0 } });
    room.groups = [{ ...room.groups[0], serving: 1000 + 50 * asked, passed: 0, joined: 9000, window: 9000, advance: [600, 900], lasts_to: [8000, 9000] }];
  }`);
  const file = roomHall("hears-waiting", 1800);
  await it.engine.publish(file);
  await waitInRoom(buyer, file.sale, { place: 4999 });
  await buyer.see(room("waiting"));
  await buyer.changes("dl div:nth-child(2) dd", 4);
  const heard = await buyer.heard();
  assert.equal(heard.filter((text) => text === room("waiting")).length, 1, heard.join("\n"));
  const told = heard.filter((text) => / before you\. /.test(text));
  assert.equal(told.length, 1, heard.join("\n"));
  assert.match(await buyer.browser.getTitle(), /^3,\d{3} · /, "the title counts");
});

/** From now on requests to a path that matches are refused with a problem, which may be repeated later. */
const refused = (person, path, status, slug, seconds) => person.before(`{
  const ask = window.fetch;
  window.fetch = async (...args) => {
    if (!${path}.test(args[0].url ?? String(args[0])) || (args[0].method ?? args[1]?.method) !== "POST") return ask(...args);
    return new Response(JSON.stringify({ type: "/problems/${slug}", title: "Later", status: ${status}, detail: "Later.", retry_after_seconds: ${seconds} }), { status: ${status}, headers: { "Content-Type": "application/problem+json", "Retry-After": "${seconds}" } });
  };
}`);

test("a screen reader hears that something is tried again, and not each second until then", async (t) => {
  const buyer = await it.person(t, { name: "hears-again" });
  await buyer.hear();
  await refused(buyer, "/\\/(admissions|payments)$/", 429, "too-many-requests", 30);
  const file = hall("hears-again");
  await it.engine.publish(file);
  await buyer.haveSession();
  const seats = texts("seats", "en");
  await buyer.go(`/s/${file.sale}/seats`);
  await chooseBest(buyer, "Stalls", 1);
  const before = (await buyer.heard()).length;
  await buyer.press(seats("hold"));
  await buyer.changes(".busy", 4);
  const heard = (await buyer.heard()).slice(before);
  assert.ok(heard.some((text) => / ask again in /.test(text)), heard.join("\n"));
  assert.ok(heard.length <= 2, heard.join("\n"));

  const { order } = await it.engine.order(file.sale, "hears-again", { tier: "stalls", best: { count: 1 } });
  const checkout = texts("checkout", "en");
  await buyer.go(`/checkout/${order}`);
  await buyer.see(checkout("how-to-pay"));
  const atCheckout = (await buyer.heard()).length;
  await buyer.press(/^Pay /, "button");
  await buyer.changes(".busy", 4);
  const paying = (await buyer.heard()).slice(atCheckout);
  assert.ok(paying.some((text) => / try again in /.test(text)), paying.join("\n"));
  assert.ok(paying.length <= 2, paying.join("\n"));
});
