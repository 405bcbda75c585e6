import "fake-indexeddb/auto";
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { OnsaleProblem } from "../shared/api.ts";
import { unlessSame } from "./camera.ts";
import { base64url, bytesOf, claimsOf, jwsOf } from "./code.ts";
import { doorName, judged, listOf, newerList, type Knowledge } from "./door.ts";
import { Doorkeeper, type Surroundings } from "./keeper.ts";
import { loadLists } from "./lists.ts";
import { saidOf } from "./outcome.tsx";
import type { Post } from "./send.ts";
import { DoorStore } from "./store.ts";
import { Deployment } from "./stub.ts";
import { byBrowser, byLibrary, isSigned, keysOf, type Verify } from "./verify.ts";

const VERIFIERS: readonly [string, Verify][] = [["the browser", byBrowser], ["the library", byLibrary]];
const NOW_MS = Date.parse("2026-06-01T18:00:00.000Z");

async function knowledgeOf(deployment: Deployment, sale = "hall"): Promise<Knowledge> {
  const list = listOf([jwsOf(deployment.list(sale), "revoked")?.payload ?? {}], sale);
  assert.ok(list);
  return { sale, keys: keysOf(await deployment.get("/ticket-keys")), list };
}

test("text that is no code, or one in another spelling, is none", () => {
  const code = new Deployment().code();
  assert.ok(jwsOf(` ${code}\n`, "ticket"));
  for (const bad of ["", "x", "a.b.c", `${code}.x`, code.slice(0, -2), `${code}=`, "x".repeat(5_000), code.replace(".", "..")]) assert.equal(jwsOf(bad, "ticket"), null, bad.slice(0, 20));
  assert.equal(jwsOf(code, "revoked"), null, "a ticket is no list");
  assert.equal(bytesOf("AB"), null, "bits that no byte needs are zero");
  assert.deepEqual(bytesOf("AA"), new Uint8Array([0]));
  for (const value of [{}, { d: "x", s: "x", t: "x", o: "x", n: 1 }, { d: "x", s: "x", t: "x", o: 7, n: 1, i: 1 }, { d: "x", s: "x", t: "x", o: "7", n: 1, i: -1 }, { d: "x", s: "x", t: "x", o: "7", n: 1, i: 1, l: ["A"] }, { d: "x", s: "x", t: "x", o: "7", n: 1, i: 1, p: 5 }]) {
    assert.equal(claimsOf(value), null);
  }
  assert.deepEqual(claimsOf({ d: "x", s: "y", t: "z", o: "7", n: 2, i: 1, l: ["A", "B"] })?.legs, ["A", "B"]);
});

for (const [name, verify] of VERIFIERS) {
  test(`a code with any one bit changed lets nobody in (${name})`, async () => {
    const here = new Deployment();
    const knowledge = await knowledgeOf(here);
    const code = here.code();
    assert.equal((await judged(code, knowledge, verify)).kind, "good");
    // The library takes milliseconds for each: of the letters every fifth, and of each all bits.
    const step = verify === byLibrary ? 5 : 1;
    for (let at = 0; at < code.length; at += step) {
      for (let bit = 0; bit < 8; bit += 1) {
        const changed = code.slice(0, at) + String.fromCharCode(code.charCodeAt(at) ^ (1 << bit)) + code.slice(at + 1);
        // A blank at an end is what scanners add, and no other code.
        if (changed.trim() !== code) assert.notEqual((await judged(changed, knowledge, verify)).kind, "good", changed);
      }
    }
  });
}

test("the library refuses what the browser refuses: a signature to which the group's order was added", async () => {
  const here = new Deployment();
  const jws = jwsOf(here.code(), "ticket");
  const [key] = keysOf(await here.get("/ticket-keys"));
  assert.ok(jws && key);
  const order = 2n ** 252n + 27_742_317_777_372_353_535_851_937_790_883_648_493n;
  let sum = [...jws.signature.slice(32)].reduceRight((all, byte) => all * 256n + BigInt(byte), 0n) + order;
  const raised = Uint8Array.from(jws.signature);
  for (let at = 32; at < 64; at += 1) { raised[at] = Number(sum % 256n); sum /= 256n; }
  for (const [name, verify] of VERIFIERS) {
    assert.equal(await verify(key, jws.signature, jws.signed), true, name);
    assert.equal(await verify(key, raised, jws.signed), false, name);
  }
});

test("only the deployment's Ed25519 keys are keys, and of two by one name either may fit", async () => {
  const [here, there] = [new Deployment(), new Deployment()];
  const other = { ...there.jwk, kid: here.jwk.kid };
  assert.deepEqual(keysOf({ keys: [here.jwk, { ...here.jwk, crv: "X25519" }, { kty: "RSA", n: "x" }, { ...here.jwk, x: "AA" }] }), [{ kid: here.jwk.kid, x: here.jwk.x }]);
  assert.deepEqual(keysOf(null), []);
  const jws = jwsOf(here.code(), "ticket");
  assert.ok(jws);
  assert.equal(await isSigned(jws, keysOf({ keys: [other, here.jwk] })), "yes");
  assert.equal(await isSigned(jws, keysOf({ keys: [other] })), "no");
  assert.equal(await isSigned(jws, []), "unknown-key");
  assert.equal(base64url(bytesOf(here.jwk.x) ?? new Uint8Array()), here.jwk.x);
});

test("a door refuses other deployments, other sales, and what was given back or issued anew", async () => {
  const [here, there] = [new Deployment(), new Deployment("there")];
  here.revoke("7", 2, 0);
  here.revoke("7", 3, 2);
  const knowledge = await knowledgeOf(here);
  const said = async (code: string) => (await judged(code, knowledge)).kind;
  assert.equal(await said(here.code()), "good");
  assert.equal(await said(there.code()), "unknown-key");
  assert.equal(await said(here.code({ deployment: "staging" })), "other-deployment");
  assert.equal(await said(here.code({ sale: "other" })), "other-sale");
  assert.equal(await said(here.code({ ticket: 2, issue: 9 })), "void");
  assert.equal(await said(here.code({ ticket: 3 })), "replaced");
  assert.equal(await said(here.code({ ticket: 3, issue: 2 })), "good");
  assert.equal(await said(here.code({ order: "77", ticket: 2 })), "good");
  assert.equal(await said(here.list()), "no-code");
});

test("a list is of one sale and of one deployment, as old as its oldest page, and no older one takes its place", () => {
  const page = (change: object) => ({ d: "here", s: "hall", at: 10, revoked: [["7", 1, 0]], ...change });
  const two = [page({ next: "8" }), page({ at: 8, from: "8", revoked: [["8", 2, 3]] })];
  assert.deepEqual(listOf(two, "hall"), { deployment: "here", sale: "hall", atMs: 8_000, isAll: false, lowest: { "7/1": 0, "8/2": 3 } });
  assert.equal(listOf([page({ all: true, revoked: [] })], "hall")?.isAll, true);
  for (const bad of [[], two.slice(0, 1), two.slice(1), [page({ next: "8" }), page({ from: "9" })], [page({ s: "x" })], [page({ next: "8" }), page({ d: "x", from: "8" })], [page({ revoked: [["7", "1", 0]] })], [page({ revoked: undefined })], [page({ at: "10" })]]) assert.equal(listOf(bad as never, "hall"), null);
  const [old, young] = [listOf([page({})], "hall"), listOf([page({ at: 11 })], "hall")];
  assert.ok(old && young);
  assert.equal(newerList(young, old), young);
  assert.equal(newerList(old, young), young);
  assert.equal(newerList(null, old), old);
});

const opened = () => DoorStore.open(randomUUID());

test("keys and list are kept once the list is signed; what is not signed, or another's, changes nothing", async () => {
  const [here, there] = [new Deployment(), new Deployment("there")];
  const store = await opened();
  here.revoke("7", 1, 0);
  await loadLists(store, "hall", here.get);
  const kept = await store.list("hall");
  assert.deepEqual(kept?.lowest, { "7/1": 0 });
  for (const list of [there.list(), here.list().slice(0, -8), here.jws("ticket", {}), here.list("other"), undefined]) {
    await assert.rejects(loadLists(store, "hall", async (path) => (path === "/ticket-keys" ? here.get(path) : { list })), OnsaleProblem);
    assert.deepEqual(await store.list("hall"), kept);
  }
  const before = here.list();
  here.revoke("8", 1, 0);
  await loadLists(store, "hall", here.get);
  await loadLists(store, "hall", async (path) => (path === "/ticket-keys" ? here.get(path) : { list: before }));
  assert.deepEqual(Object.keys((await store.list("hall"))?.lowest ?? {}), ["7/1", "8/1"], "an older answer of a cache does not count");
  const pages = new Map([["/sales/hall/revoked", { list: here.jws("revoked", { d: "here", s: "hall", at: 2_000, next: "2", revoked: [["1", 1, 0]] }) }],
    ["/sales/hall/revoked?from=2", { list: here.jws("revoked", { d: "here", s: "hall", at: 2_000, from: "2", revoked: [["2", 1, 0]] }) }]]);
  const { list } = await loadLists(store, "hall", async (path) => (path === "/ticket-keys" ? here.get(path) : pages.get(path)));
  assert.deepEqual(list.lowest, { "1/1": 0, "2/1": 0 });
});

const SCAN = { sale: "hall", order: "7", ticket: 1, seat: "A-1", door: "north", atMs: NOW_MS };

test("of two scans of one ticket at a device one is recorded, even if they come at once", async () => {
  const store = await opened();
  const [one, other] = await Promise.all([store.record(SCAN, "c"), store.record({ ...SCAN, atMs: NOW_MS + 1 }, "c")]);
  assert.deepEqual([one, other?.atMs], [null, NOW_MS]);
  assert.equal(await store.record({ ...SCAN, sale: "other" }, "c"), null);
  assert.equal((await store.scans("hall")).length, 1);
});

/** A door at a deployment, whose network and patience the test has in its hands. */
async function doorAt(here: Deployment, door: string, change: Partial<Surroundings> = {}) {
  const store = await opened();
  const around = { isOnline: false, nowMs: NOW_MS };
  const keeper = new Doorkeeper(store, { sale: "hall", title: "Hall", door, tiers: [], stops: [] }, {
    post: here.post, canSend: () => around.isOnline, nowMs: () => around.nowMs, longEnough: () => new Promise(() => {}), ...change,
  });
  const knowledge = await knowledgeOf(here);
  return { store, around, check: (code: string) => keeper.check(code, knowledge), send: () => keeper.send() };
}

test("without a network a ticket is let in once, and each is sent once when there is one", async () => {
  const here = new Deployment();
  const north = await doorAt(here, "north");
  for (let ticket = 1; ticket <= 3; ticket += 1) {
    const said = await north.check(here.code({ ticket }));
    assert.deepEqual([said.kind, said.kind === "admitted" && said.isConfirmed], ["admitted", false]);
  }
  const again = await north.check(here.code());
  assert.deepEqual(again.kind === "already" && again.first, { door: "north", atMs: NOW_MS });
  assert.equal(here.record.length, 0);
  assert.deepEqual(await north.send(), []);
  assert.deepEqual(await north.send(), []);
  assert.equal(here.requests, 1);
  assert.equal(here.record.length, 3);
  const kept = await north.store.scans("hall");
  assert.ok(kept.every(({ state, code }) => state === "sent" && code === undefined), "what is sent needs no code any more");
});

test("an answer that was lost is asked for again, and recorded once", async () => {
  const here = new Deployment();
  let isLost = true;
  const north = await doorAt(here, "north", { post: async (sale, checkIns) => {
    const results = await here.post(sale, checkIns);
    if (isLost) throw OnsaleProblem.withoutAnswer(null);
    return results;
  } });
  await north.check(here.code());
  await assert.rejects(north.send(), OnsaleProblem);
  assert.equal((await north.store.waiting()).length, 1);
  isLost = false;
  assert.deepEqual(await north.send(), []);
  assert.equal(here.record.length, 1);
  assert.equal((await north.store.waiting()).length, 0);
});

test("of two doors without a network both let one ticket in; who sends later is told who was first, also after a lost answer", async () => {
  for (const loses of [false, true]) {
    const here = new Deployment();
    let isLost = loses;
    const [north, south] = [await doorAt(here, "north"), await doorAt(here, "south", { post: async (sale, checkIns) => {
      const results = await here.post(sale, checkIns);
      if (isLost) { isLost = false; throw OnsaleProblem.withoutAnswer(null); }
      return results;
    } })];
    south.around.nowMs = NOW_MS - 5_000;
    for (const door of [south, north]) assert.equal((await door.check(here.code())).kind, "admitted");
    assert.deepEqual(await north.send(), []);
    if (loses) await assert.rejects(south.send());
    const [conflict, ...others] = await south.send();
    assert.equal(others.length, 0);
    assert.deepEqual([conflict?.first, conflict?.wasLetIn], [{ door: "north", atMs: NOW_MS }, true]);
    assert.deepEqual(here.record.map(({ door }) => door), ["north", "south"], "both stand in the record");
  }
});

test("with a network the second door lets nobody in, and says where the first was; so it does with a ticket given back since", async () => {
  const here = new Deployment();
  const [north, south] = [await doorAt(here, "north"), await doorAt(here, "south")];
  north.around.isOnline = south.around.isOnline = true;
  const first = await north.check(here.code());
  assert.ok(first.kind === "admitted" && first.isConfirmed);
  south.around.nowMs = NOW_MS + 9_000;
  const second = await south.check(here.code());
  assert.deepEqual(second.kind === "already" && second.first, { door: "north", atMs: NOW_MS });
  const third = await south.check(here.code());
  assert.deepEqual(third.kind === "already" && third.first, { door: "north", atMs: NOW_MS }, "and says so again without asking");
  assert.ok((await south.store.scans("hall")).every(({ wasLetIn }) => !wasLetIn));
  here.revoke("7", 2, 0);
  assert.equal((await south.check(here.code({ ticket: 2 }))).kind, "refused", "the list that the door has is older");
});

test("a server that does not answer in time does not keep anybody waiting, and its answer is taken when it comes", async () => {
  const here = new Deployment();
  here.record.push({ key: "7/1", door: "north", atMs: NOW_MS - 1 });
  let answer = () => {};
  const answered = new Promise<void>((resolve) => { answer = resolve; });
  const post: Post = async (sale, checkIns) => { await answered; return here.post(sale, checkIns); };
  const south = await doorAt(here, "south", { post, longEnough: async () => {} });
  south.around.isOnline = true;
  const said = await south.check(here.code());
  assert.ok(said.kind === "admitted" && !said.isConfirmed);
  answer();
  assert.deepEqual(await south.send(), [], "what was settled meanwhile is not sent again");
  const [scan] = await south.store.scans("hall");
  assert.deepEqual([scan?.state, scan?.wasLetIn, scan?.first?.door], ["conflict", true, "north"]);
  assert.equal(here.record.length, 2);
});

test("a hundred at a time are sent, and one that is refused does not keep the others", async () => {
  const here = new Deployment();
  const sizes: number[] = [];
  const north = await doorAt(here, "north", { post: async (sale, checkIns) => {
    sizes.push(checkIns.length);
    if (checkIns.some(({ code }) => code === "bad")) throw OnsaleProblem.fromResponse(422, null, null);
    return here.post(sale, checkIns);
  } });
  for (let order = 1; order <= 150; order += 1) {
    await north.store.record({ ...SCAN, order: String(order), atMs: NOW_MS + order }, order === 120 ? "bad" : here.code({ order: String(order) }));
  }
  assert.deepEqual(await north.send(), []);
  assert.equal(sizes[0], 100);
  assert.equal(here.record.length, 149);
  const states = (await north.store.scans("hall")).map(({ order, state }) => [order, state]);
  assert.deepEqual(states.filter(([, state]) => state !== "sent"), [["120", "refused"]]);
  const unavailable = await doorAt(here, "north", { post: async () => { throw OnsaleProblem.fromResponse(503, null, null); } });
  await unavailable.check(here.code({ order: "999" }));
  await assert.rejects(unavailable.send());
  assert.equal((await unavailable.store.waiting()).length, 1);
});

test("an answer with too few results settles nothing", async () => {
  const here = new Deployment();
  const north = await doorAt(here, "north", { post: async () => [] });
  await north.check(here.code());
  await assert.rejects(north.send());
  assert.equal((await north.store.waiting()).length, 1);
});

test("a code in front of the camera is read once until it has been away", () => {
  let nowMs = 0;
  const isNew = unlessSame(() => nowMs);
  const seen = ([["a", 0], ["a", 2_000], ["a", 4_000], ["b", 4_100], ["a", 4_200], ["a", 7_201]] as const).map(([code, atMs]) => { nowMs = atMs; return isNew(code); });
  assert.deepEqual(seen, [true, false, false, true, true, true]);
});

test("a door's name is what the record takes", () => {
  assert.equal(doorName("  North \n 2 "), "North 2");
  assert.equal(doorName("北".repeat(10)), "北".repeat(10));
  for (const bad of ["", "  ", "x".repeat(33), "北".repeat(11), "a#b", "a\u0007b"]) assert.equal(doorName(bad), null, bad);
});

test("of a cancelled sale no ticket is good, though none is listed", async () => {
  const here = new Deployment();
  const knowledge = await knowledgeOf(here);
  assert.equal((await judged(here.code(), { ...knowledge, list: { ...knowledge.list, isAll: true } })).kind, "void");
});

test("every verdict has its own words, and only one is yes", () => {
  const claims = claimsOf({ d: "x", s: "y", t: "A-1", o: "7", n: 2, i: 1 });
  assert.ok(claims);
  const verdicts = [
    { kind: "admitted", claims, isConfirmed: true }, { kind: "already", claims, first: { door: "north", atMs: NOW_MS } }, { kind: "void", claims }, { kind: "replaced", claims },
    { kind: "refused", claims }, { kind: "other-sale", claims }, { kind: "unknown-key" }, { kind: "not-signed" }, { kind: "no-code" }, "failed", "checking",
  ] as const;
  assert.equal(new Set(verdicts.map((verdict) => saidOf(verdict).title)).size, verdicts.length);
  assert.deepEqual(verdicts.filter((verdict) => saidOf(verdict).look === "yes"), [verdicts[0]]);
});
