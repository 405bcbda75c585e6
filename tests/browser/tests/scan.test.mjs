/** Doors: with a network and without; two of them; codes that are changed, given back, copied, or another deployment's. */
import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { fixture } from "../lib/fixture.mjs";
import { texts } from "../lib/person.mjs";
import { hall } from "../lib/sales.mjs";
import { saying } from "../lib/steps.mjs";

const { it, test } = fixture();

/** A sale with an order of so many paid tickets, and their codes. */
async function soldTickets(name, count, changes = {}) {
  const file = hall(name, changes);
  await it.engine.publish(file);
  const buyer = `${name}-buyer`;
  const { order } = await it.engine.paidOrder(file.sale, buyer, { tier: "stalls", best: { count } });
  const { tickets } = await it.engine.do(`/orders/${order}/tickets`, { as: buyer });
  assert.equal(tickets.length, count);
  return { file, buyer, order, codes: tickets.map(({ code }) => code) };
}

/** A device that is set up as a door. */
async function doorAt(t, file, name, options = {}) {
  const words = texts("scan", options.language ?? "en");
  const door = await it.person(t, { name: `door-${name}`, hasWorker: true, ...options });
  await door.go("/scan");
  await door.press(words("sign-in"), "main button");
  await door.answerIssuer();
  await door.type(words("sale"), file.sale);
  await door.type(words("door"), name);
  await door.press(words("begin"));
  await door.find(words("code"), "input");
  await fact(door, "offline", words("offline-yes"));
  return door;
}

/** The header of a request of whoever is signed in there: operators' routes take tokens of their issuer only. */
async function operatorOf(person) {
  const { token } = JSON.parse(await person.browser.executeScript(() => sessionStorage.getItem("onsale.session.operators")));
  return { authorization: `Bearer ${token}` };
}

/** Waits for a value beside its name on the device's card. */
const fact = (door, key, value) => door.wait(() => door.browser.executeScript((name, wanted) => [...document.querySelectorAll("dt")].some((dt) => dt.textContent === name && dt.nextElementSibling.textContent === wanted), texts("scan", door.language)(key), String(value)), `${key} is not ${value}`);

/** Types a code as a hand scanner does, and waits for what is said to it. */
async function scan(door, code, key) {
  const words = texts("scan", door.language);
  const judged = () => door.browser.executeScript(() => document.querySelector(".said")?.dataset.judged ?? null);
  const before = await judged();
  await door.type(words("code"), `${code}\n`);
  await door.wait(async () => ![null, before].includes(await judged()), "nothing is said to the code");
  assert.equal(await door.text(".said .title"), words(key));
}

for (const [language, window] of [["en", {}], ["zh", { width: 360, height: 740, dark: true }]]) {
  test(`a door lets a ticket in once, also without a network, and sends each once (${language})`, async (t) => {
    const words = texts("scan", language);
    const { file, order, buyer, codes } = await soldTickets(`door-${language}`, 3, { refunds: { until: "2099-01-01T00:00:00.000Z", fee_percent: 0 } });
    const door = await doorAt(t, file, "North", { language, ...window });
    await door.accessible("a door, set up");
    await scan(door, codes[0], "admitted");
    await door.see(words("admitted-confirmed"));
    await door.accessible("let in");
    await door.fits();
    await scan(door, codes[0], "already");
    await door.see(saying("scan", language, "already-text", { door: "North" }));
    await door.accessible("scanned before");
    await fact(door, "waiting", 0);
    await door.offline(true);
    // The page comes from the worker, and knows what it knew.
    await door.browser.navigate().refresh();
    await door.see(words("copies"));
    await door.see(saying("scan", language, "list-age"));
    await scan(door, codes[1], "admitted");
    await door.see(words("admitted-unconfirmed"));
    await scan(door, codes[0], "already");
    await scan(door, codes[1], "already");
    await fact(door, "waiting", 1);
    await door.accessible("without a network");
    await door.offline(false);
    await fact(door, "waiting", 0);
    await fact(door, "let-in", 2);
    const { admitted } = await it.engine.do(`/operator/sales/${file.sale}/check-ins`, { headers: await operatorOf(door) });
    assert.equal(admitted, 2);
    const states = await it.engine.do(`/orders/${order}/tickets`, { as: buyer });
    assert.deepEqual(states.tickets.map(({ state }) => state), ["checked-in", "checked-in", "valid"]);
    assert.deepEqual(await door.complaints(), []);
    const { lines: [{ tickets: [first] }] } = await it.engine.do(`/orders/${order}`, { as: buyer });
    const refused = await it.engine.ask(`/orders/${order}/refunds`, { body: { number: 1, tickets: [{ tier: "stalls", seat: first.seat }] }, as: buyer });
    assert.match(refused.document.type, /ticket-checked-in$/);
  });
}

test("a code with one bit changed, another deployment's, another sale's and what is none let nobody in", async (t) => {
  const [{ file, codes: [code] }, other] = [await soldTickets("false", 1), await soldTickets("false-other", 1)];
  const door = await doorAt(t, file, "East");
  const [head, body, signature] = code.split(".");
  const flipped = (text, at) => { const bytes = Buffer.from(text, "base64url"); bytes[at] ^= 1; return bytes.toString("base64url"); };
  await scan(door, `${head}.${body}.${flipped(signature, 20)}`, "not-signed");
  await door.accessible("not genuine");
  await scan(door, `${head}.${flipped(body, Buffer.from(body, "base64url").indexOf('"n":') + 4)}.${signature}`, "not-signed");
  await scan(door, `${head}.${body}.${signature.slice(0, -1)}`, "no-code");
  // Another deployment's key, which signs the very same ticket.
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const { x } = publicKey.export({ format: "jwk" });
  const kid = createHash("sha256").update(JSON.stringify({ crv: "Ed25519", kty: "OKP", x })).digest("base64url");
  const signedBy = (header) => {
    const text = `${Buffer.from(JSON.stringify(header)).toString("base64url")}.${body}`;
    return `${text}.${sign(null, Buffer.from(text), privateKey).toString("base64url")}`;
  };
  const ours = JSON.parse(Buffer.from(head, "base64url").toString());
  await scan(door, signedBy({ ...ours, kid }), "not-ours");
  await scan(door, signedBy(ours), "not-signed");
  await scan(door, other.codes[0], "not-other-sale");
  await scan(door, "hello", "no-code");
  await scan(door, code, "admitted");
  await fact(door, "let-in", 1);
});

test("a ticket that was given back is void at the door, once its list knows, and an older code of one that was issued anew", async (t) => {
  const { file, order, buyer, codes } = await soldTickets("back", 2, { refunds: { until: "2099-01-01T00:00:00.000Z", fee_percent: 0 } });
  const operator = await it.person(t, { name: "olga" });
  await operator.haveSession("operators");
  await operator.go(`/operator/desk?order=${order}`);
  const desk = texts("desk", "en");
  await operator.press(saying("desk", "en", "reissue-number", { number: "2" }), "input[type=checkbox]");
  await operator.press(new RegExp(`^${desk("reissue-start")}`), "main button");
  await operator.accessible("issue a ticket anew?");
  await operator.press(desk("reissue-start"), "dialog button");
  await operator.see(desk("reissue-done.one", { count: 1 }));
  const { lines: [{ tickets: [first] }] } = await it.engine.do(`/orders/${order}`, { as: buyer });
  await it.engine.do(`/orders/${order}/refunds`, { body: { number: 1, tickets: [{ tier: "stalls", seat: first.seat }] }, as: buyer });
  const { tickets } = await it.engine.until(`/orders/${order}/tickets`, ({ tickets: now }) => now[0].state === "revoked" && now[1].issue === 2, { as: buyer });
  assert.equal(tickets[0].code, undefined);
  const door = await doorAt(t, file, "West");
  await door.press(texts("scan", "en")("load-now"));
  await fact(door, "list-size", 2);
  await door.offline(true);
  await scan(door, codes[0], "not-void");
  await door.accessible("void");
  await scan(door, codes[1], "not-replaced");
  await scan(door, tickets[1].code, "admitted");
  await door.offline(false);
  await fact(door, "waiting", 0);
});

test("a copied code: the first scan wins where there is a network; two doors without one are told of each other, and so are operators", async (t) => {
  const words = texts("scan", "en");
  const { file, order, codes } = await soldTickets("copied", 2);
  const [north, south] = [await doorAt(t, file, "North"), await doorAt(t, file, "South")];
  await scan(north, codes[0], "admitted");
  await scan(south, codes[0], "already");
  await south.see(saying("scan", "en", "already-text", { door: "North" }));
  for (const door of [north, south]) await door.offline(true);
  for (const door of [north, south]) await scan(door, codes[1], "admitted");
  await north.offline(false);
  await fact(north, "waiting", 0);
  await south.offline(false);
  await south.see(words("conflicts"));
  await south.see(saying("scan", "en", "conflict", { first: "North", door: "South" }));
  await south.accessible("let in twice");
  assert.equal((await north.text()).includes(words("conflicts")), false, "who was first has let nobody in wrongly");
  const operator = await it.person(t, { name: "olga" });
  await operator.haveSession("operators");
  await operator.go(`/operator?sale=${file.sale}`);
  await operator.see(saying("operator", "en", "check-ins-twice", { first: "North", again: "South" }));
  await operator.find(saying("operator", "en", "check-ins-ticket", { order }), "main a");
  await operator.accessible("check-ins of a sale");
});

test("a door goes on when its session has run out, and sends once somebody signs in; a buyer's token sets none up", async (t) => {
  const words = texts("scan", "en");
  const { file, codes: [code] } = await soldTickets("session", 1);
  const door = await doorAt(t, file, "North");
  await door.signOut();
  await door.see(words("sign-in-to-send"));
  await scan(door, code, "admitted");
  await door.see(words("admitted-unconfirmed"));
  await fact(door, "waiting", 1);
  await door.accessible("nobody is signed in");
  await door.press(words("sign-in"), "main button");
  await door.answerIssuer();
  await fact(door, "waiting", 0);
  const { status } = await it.engine.ask(`/operator/sales/${file.sale}/check-ins`, { body: { check_ins: [] }, as: "mallory" });
  assert.ok([401, 403].includes(status), String(status));
});

test("a clock that is an hour wrong records the right time, and the worker answers for nothing but the page", async (t) => {
  const { file, codes: [code], order, buyer } = await soldTickets("clock", 1);
  const words = texts("scan", "en");
  const door = await it.person(t, { name: "door-clock", hasWorker: true });
  await door.wrongClock(3_600_000);
  await door.haveSession("operators");
  await door.go(`/scan?sale=${file.sale}`);
  await door.type(words("door"), "North");
  await door.press(words("begin"));
  await fact(door, "offline", words("offline-yes"));
  await door.offline(true);
  await scan(door, code, "admitted");
  await door.offline(false);
  await fact(door, "waiting", 0);
  const { tickets: [ticket] } = await it.engine.do(`/orders/${order}/tickets`, { as: buyer });
  assert.ok(Math.abs(Date.parse(ticket.checked_in_at) - Date.now()) < 300_000, ticket.checked_in_at);
  const scopes = await door.browser.executeAsyncScript((done) => navigator.serviceWorker.getRegistrations().then((all) => done(all.map(({ scope }) => new URL(scope).pathname))));
  assert.deepEqual(scopes, ["/scan"]);
  await door.go("/");
  assert.equal(await door.browser.executeScript("return navigator.serviceWorker.controller === null"), true);
});

test("where storage is forbidden no door is set up, and why is said", async (t) => {
  const door = await it.person(t, { name: "door-stores" });
  await door.before(`Object.defineProperty(window, "indexedDB", { get() { throw new DOMException("denied", "SecurityError"); } });`);
  await door.go("/scan");
  await door.see(texts("scan", "en")("no-storage"));
  await door.accessible("no storage");
});
