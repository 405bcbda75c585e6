import assert from "node:assert/strict";
import { test } from "node:test";

import { clock } from "./clock.ts";
import { endSession, keepSession, mayTake, session, signOut, type Session } from "./session.ts";

const NOW = Date.now();
const of = (token: string, more: Partial<Session> = {}): Session => ({ token, expiresAtMs: NOW + 60_000, name: "A", scope: "openid", ...more });

test("a session is kept until its person signs out, and none from before counts after that", () => {
  keepSession("buyers", of("one"));
  const kept = session("buyers");
  assert.equal(kept?.token, "one");
  assert.equal(session("operators"), null, "operators have sessions of their own");
  signOut("buyers");
  assert.equal(session("buyers"), null);
  assert.ok(!mayTake("buyers", kept ?? of("")), "another tab that missed it offers what is over");
  assert.ok(mayTake("operators", of("two")), "operators have not signed out");
  keepSession("buyers", of("three"));
  assert.equal(session("buyers")?.token, "three");
});

test("a tab takes the first answer, and nothing that has run out, was refused, or is no session", () => {
  endSession("buyers", "three");
  assert.equal(session("buyers"), null);
  signOut("operators");
  keepSession("operators", of("four"));
  const kept = session("operators") ?? of("");
  assert.ok(!mayTake("operators", { ...kept, token: "five" }), "there is one already");
  endSession("operators", "of a request that left before");
  assert.equal(session("operators")?.token, "four");
  endSession("operators", "four");
  assert.equal(session("operators"), null);
  assert.ok(!mayTake("operators", kept), "its token was refused");
  assert.ok(mayTake("operators", { ...kept, token: "five" }));
  assert.ok(mayTake("operators", { ...kept, token: "five", expiresAtMs: NOW - 1 }), "as long as nobody has said the time, the API decides");
  clock.observe(NOW, NOW + 1_000, NOW);
  assert.ok(!mayTake("operators", { ...kept, token: "five", expiresAtMs: NOW - 1 }));
  for (const wrong of [null, 7, {}, { token: 7, expiresAtMs: NOW + 60_000 }, { token: "six" }]) {
    assert.ok(!mayTake("operators", wrong as never), JSON.stringify(wrong));
  }
});
