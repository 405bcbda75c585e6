import assert from "node:assert/strict";
import { test } from "node:test";

import { keepSession, session, type Role } from "./session.ts";
import { asksAlways, completeSignOut, endSessionAddress, isSharedComputer, keepSharedComputer, signIn, signOutAtIssuer } from "./sign-in.ts";

const ORIGIN = "https://tickets.example";
const ISSUER = "https://id.example/buyers";

/** Storage, the address and the network of a page: what a page has that a test has not. */
class FakePage {
  /** What the issuer's discovery document says; null: it does not answer. */
  discovery: Record<string, unknown> | null = {};
  /** Called before the issuer answers. */
  onDiscovery = () => {};
  readonly left: URL[] = [];
  constructor(path: string) {
    const storage = () => {
      const kept = new Map<string, string>();
      return { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, value: string) => void kept.set(key, value), removeItem: (key: string) => void kept.delete(key) };
    };
    const { pathname, search } = new URL(path, ORIGIN);
    Object.assign(globalThis, {
      sessionStorage: storage(), localStorage: storage(), location: { origin: ORIGIN, pathname, search, assign: (to: URL) => this.left.push(to) },
      fetch: (asked: string | URL) => this.#answer(String(asked)),
    });
  }
  async #answer(asked: string): Promise<Response> {
    if (asked === "/config.json") {
      const issuer = (role: Role) => ({ issuer: `https://id.example/${role}`, client_id: `${role}-pages`, scope: "openid" });
      return Response.json({ buyers: issuer("buyers"), operators: issuer("operators"), payments: [] });
    }
    const issuer = asked.replace("/.well-known/openid-configuration", "");
    this.onDiscovery();
    if (this.discovery === null) throw new TypeError("no network");
    return Response.json({ issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token`, ...this.discovery });
  }
}

const begin = (role: Role) => keepSession(role, { token: "access", expiresAtMs: Date.now() + 60_000, name: "A", scope: "openid", idToken: "e.id.s" });

test("signing out ends the session here at once, and then that of the issuer", async () => {
  const page = new FakePage("/my/orders?lang=zh");
  page.discovery = { end_session_endpoint: `${ISSUER}/logout?tenant=7` };
  let atIssuer: unknown = "not asked";
  page.onDiscovery = () => (atIssuer = session("buyers"));
  begin("buyers");
  assert.equal(await signOutAtIssuer("buyers"), "leaving");
  assert.equal(atIssuer, null, "whoever presses the button is signed out before anybody is asked");
  const [address] = page.left;
  assert.equal(page.left.length, 1);
  assert.equal(address?.origin + (address?.pathname ?? ""), `${ISSUER}/logout`);
  assert.deepEqual(Object.fromEntries(address?.searchParams ?? []), {
    tenant: "7", id_token_hint: "e.id.s", client_id: "buyers-pages", post_logout_redirect_uri: `${ORIGIN}/signed-in`, logout_uri: `${ORIGIN}/signed-in`, ui_locales: "en",
  });
  assert.ok(!String(address).includes("access"), "the access token is in no address");
  assert.equal(completeSignOut(new URL(`${ORIGIN}/signed-in`)), "/my/orders?lang=zh");
  assert.equal(completeSignOut(new URL(`${ORIGIN}/signed-in?state=x`)), "/my/orders?lang=zh", "some issuers add to the address");
  for (const of of ["code=c&state=s", "error=access_denied&state=s"]) assert.equal(completeSignOut(new URL(`${ORIGIN}/signed-in?${of}`)), null, of);
});

test("an issuer that has no such endpoint, or does not answer, goes on, and is not left for", async () => {
  for (const discovery of [{}, null, { end_session_endpoint: "not an address" }]) {
    const page = new FakePage("/");
    page.discovery = discovery;
    begin("buyers");
    assert.equal(await signOutAtIssuer("buyers"), "goes-on", JSON.stringify(discovery));
    assert.equal(session("buyers"), null);
    assert.deepEqual(page.left, []);
    assert.equal(completeSignOut(new URL(`${ORIGIN}/signed-in`)), null, "nobody comes back from there");
  }
});

test("a session from before it had an id token ends by the client's name", () => {
  const address = endSessionAddress(`${ISSUER}/logout`, { clientId: "c", backTo: `${ORIGIN}/signed-in`, locale: "en" });
  assert.equal(address.searchParams.has("id_token_hint"), false);
  assert.equal(address.searchParams.get("client_id"), "c");
});

test("the issuer asks who signs in on a computer that others use, and always at desk and door", async () => {
  const asked = async (role: Role, path: string) => {
    const page = new FakePage(path);
    keepSharedComputer(isShared);
    await signIn(role);
    return page.left[0]?.searchParams.get("prompt") ?? null;
  };
  let isShared = false;
  assert.equal(await asked("buyers", "/my/orders"), null);
  assert.equal(await asked("operators", "/operator"), null);
  for (const path of ["/operator/desk", "/operator/desk?order=42", "/scan", "/scan?lang=zh"]) {
    assert.equal(await asked("operators", path), "login", path);
    assert.ok(!asksAlways("buyers", path));
  }
  assert.equal(await asked("operators", "/operator?desk"), null);
  isShared = true;
  assert.equal(await asked("buyers", "/my/orders"), "login");
  assert.equal(await asked("operators", "/operator"), "login");
  assert.ok(isSharedComputer());
  keepSharedComputer(false);
  assert.ok(!isSharedComputer());
});
