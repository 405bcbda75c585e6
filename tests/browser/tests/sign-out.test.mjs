/** Signing out, here and at the issuer; signing in on a computer that others use. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { fixture } from "../lib/fixture.mjs";
import { texts } from "../lib/person.mjs";

const { it, test } = fixture();

/** From now on the issuer's discovery document is changed by a function, which is given as its source. */
const discovery = (person, change) => person.before(`{
  const ask = window.fetch;
  window.fetch = async (...args) => {
    const answer = await ask(...args);
    if (!(args[0].url ?? String(args[0])).endsWith("/.well-known/openid-configuration")) return answer;
    const document = await answer.json();
    (${change})(document);
    return new Response(JSON.stringify(document), answer);
  };
}`);

/** Where an issuer ends its sessions: keeps what it is asked, and sends back to the pages. */
async function endOfSessions(t) {
  const asked = [];
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url, "http://127.0.0.1");
    asked.push(Object.fromEntries(searchParams));
    response.writeHead(303, { Location: searchParams.get("post_logout_redirect_uri") }).end();
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  t.after(() => server.close());
  return { asked, address: `http://127.0.0.1:${server.address().port}/logout` };
}

const sessionOf = (person) => person.browser.executeScript(() => JSON.parse(sessionStorage.getItem("onsale.session.buyers")));
const claims = (token) => JSON.parse(Buffer.from(token.split(".")[1], "base64url").toString());
const PHONE = { width: 320, height: 640, dark: true };

for (const [language, options] of [["en", {}], ["zh", PHONE]]) {
  test(`signing out ends the session of the issuer, where it can be ended (${language})`, async (t) => {
    const [shared, words, orders] = ["shared", "signed-in", "orders"].map((page) => texts(page, language));
    const { asked, address } = await endOfSessions(t);
    const buyer = await it.person(t, { language, name: `leaves-${language}`, ...options });
    await discovery(buyer, `(document) => { document.end_session_endpoint = ${JSON.stringify(address)}; }`);
    await buyer.go("/my/orders");
    await buyer.signIn();
    await buyer.find(shared("sign-out"));
    const { token, idToken } = await sessionOf(buyer);
    await buyer.press(shared("sign-out"));
    await buyer.at("/signed-in");
    await buyer.see(words("out"));
    assert.equal(asked.length, 1);
    const [request] = asked;
    assert.equal(request.id_token_hint, idToken);
    assert.equal(claims(request.id_token_hint).sub, `leaves-${language}`);
    assert.equal(claims(request.id_token_hint).aud, request.client_id);
    assert.equal(request.post_logout_redirect_uri, `${new URL(it.engine.url).origin}/signed-in`);
    assert.ok(!JSON.stringify(request).includes(token), "the access token is told to nobody");
    assert.equal(await sessionOf(buyer), null);
    await buyer.accessible("signed out");
    await buyer.fits();
    await buyer.press(words("out.back"));
    await buyer.at("/my/orders");
    await buyer.see(orders("sign-in-first"));
    assert.deepEqual(await buyer.complaints(), []);
  });

  test(`an issuer whose session goes on is named, and the next sign-in can ask who it is (${language})`, async (t) => {
    const [shared, orders] = ["shared", "orders"].map((page) => texts(page, language));
    const buyer = await it.person(t, { language, name: `stays-${language}`, ...options });
    await discovery(buyer, "(document) => { delete document.end_session_endpoint; }");
    await buyer.go("/my/orders");
    await buyer.signIn();
    await buyer.find(shared("sign-out"));
    await buyer.press(shared("sign-out"));
    await buyer.see(shared("sign-out-goes-on"), "main");
    assert.equal(await sessionOf(buyer), null);
    await buyer.see(orders("sign-in-ended"));
    await buyer.accessible("signed out here alone");
    await buyer.fits();
    const prompt = async () => {
      await buyer.at(/\/authorize$/);
      return new URL(await buyer.browser.getCurrentUrl()).searchParams.get("prompt");
    };
    await buyer.press(shared("sign-in"), "main button");
    assert.equal(await prompt(), null);
    await buyer.go("/my/orders");
    await buyer.press(shared("shared-computer"), "input[type=checkbox]");
    await buyer.press(shared("sign-in"), "main button");
    assert.equal(await prompt(), "login");
    // It is said once for the computer.
    await buyer.go("/");
    await buyer.press(shared("sign-in"), "header button");
    assert.equal(await prompt(), "login");
  });
}

test("whoever signs in at the order desk or at a door is always asked who they are", async (t) => {
  const shared = texts("shared", "en");
  const operator = await it.person(t, { name: "otto" });
  for (const [path, prompt] of [["/operator", null], ["/operator/desk", "login"], ["/scan", "login"]]) {
    await operator.go(path);
    await operator.find(shared("sign-in"), "main button");
    assert.equal(await operator.has(shared("shared-computer"), "input[type=checkbox]"), prompt === null, path);
    await operator.press(shared("sign-in"), "main button");
    await operator.at(/\/authorize$/);
    assert.equal(new URL(await operator.browser.getCurrentUrl()).searchParams.get("prompt"), prompt, path);
  }
});
