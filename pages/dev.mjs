/**
 * A server for developing the pages, no part of the product: serves `dist/` by the table of routes, hands `/api/*` on to
 * an engine (`ONSALE_URL`, its gateway), answers `/config.json` (from the engine if it has one), and is a small issuer,
 * so that signing in works as it does elsewhere. The issuer's tokens are those of `onsale token` (`ONSALE_BIN`, with
 * `ONSALE_DATA_DIR` as the engine's).
 *
 *   ONSALE_URL=http://127.0.0.1:8080 ONSALE_BIN=target/debug/onsale ONSALE_DATA_DIR=/tmp/x npm run dev
 */
import { execFile } from "node:child_process";
import { createHash, createSign, generateKeyPairSync, randomBytes } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer, request as send } from "node:http";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const DIST = process.env.ONSALE_PAGES ?? join(dirname(fileURLToPath(import.meta.url)), "dist");
const ENGINE = process.env.ONSALE_URL ? new URL(process.env.ONSALE_URL) : null;
const BIN = process.env.ONSALE_BIN ?? "onsale";
const PORT = Number(process.env.PORT ?? 0);
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".svg": "image/svg+xml", ".png": "image/png", ".webmanifest": "application/manifest+json" };
const ROLES = { buyers: { client_id: "onsale-pages", scope: "openid" }, operators: { client_id: "onsale-operators", scope: "openid onsale/watch onsale/operate onsale/refund onsale/scan" } };

const key = generateKeyPairSync("rsa", { modulusLength: 2048 });
const codes = new Map();
const base64url = (value) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");
const origin = () => `http://127.0.0.1:${server.address().port}`;

function reply(response, status, body, headers = {}) {
  const text = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  response.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store", ...headers });
  response.end(text);
}

/** The table of pages, as it was built. */
const table = () => JSON.parse(readFileSync(join(DIST, "routes.json"), "utf8"));

function matches(pattern, path) {
  const [wanted, found] = [pattern.split("/"), path.split("/")];
  return wanted.length === found.length && wanted.every((segment, i) => (segment.startsWith("{") ? found[i] !== "" : segment === found[i]));
}

const csp = () => JSON.parse(readFileSync(join(DIST, "csp.json"), "utf8")).policy.replace("{connect}", "");

/** A page or an asset of `dist/`. */
function file(response, path) {
  const { pages, same_names: sameNames } = table();
  const page = pages.find((route) => matches(route.path, path));
  const asset = normalize(join(DIST, path));
  const isAsset = (path.startsWith("/assets/") || path === "/sw.js" || path === "/robots.txt") && asset.startsWith(DIST) && existsSync(asset) && statSync(asset).isFile();
  let found = isAsset ? asset : join(DIST, page?.file ?? "404.html");
  const isThere = existsSync(found) && (isAsset || page !== undefined);
  if (!isThere) found = join(DIST, "404.html");
  reply(response, isThere ? 200 : 404, readFileSync(found), {
    "Content-Type": TYPES[extname(found)] ?? "application/octet-stream",
    "Content-Security-Policy": csp(), "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
    "Cache-Control": isAsset && path.startsWith("/assets/") && !sameNames.includes(path.slice(1)) ? "public, max-age=31536000, immutable" : "no-cache",
  });
}

/** Hands a request on to the engine; the headers in `changed` are this server's. */
function proxy(incoming, response, path, changed = {}) {
  if (ENGINE === null) return reply(response, 503, { type: "/problems/unavailable", title: "No answer now", status: 503, detail: "ONSALE_URL is not set", retry_after_seconds: 5 });
  const outgoing = send(new URL(path, ENGINE), { method: incoming.method, headers: { ...incoming.headers, host: ENGINE.host } }, (answer) => {
    response.writeHead(answer.statusCode, { ...answer.headers, ...changed });
    answer.pipe(response);
  });
  outgoing.on("error", () => reply(response, 503, { type: "/problems/unavailable", title: "No answer now", status: 503, detail: "the engine does not answer", retry_after_seconds: 2 }));
  incoming.pipe(outgoing);
}

async function bodyOf(incoming) {
  const chunks = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return new URLSearchParams(Buffer.concat(chunks).toString());
}

const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

async function issue(role, name) {
  const who = role === "operators" ? ["--operator"] : ["--user", name];
  const { stdout } = await promisify(execFile)(BIN, ["token", ...who, "--json"]);
  return JSON.parse(stdout).token;
}

/** The issuer of a role: discovery, keys, a form, and the exchange of codes. */
async function issuer(incoming, response, url, role, path) {
  const iss = `${origin()}/${role}`;
  if (path === "/.well-known/openid-configuration") {
    return reply(response, 200, { issuer: iss, authorization_endpoint: `${iss}/authorize`, token_endpoint: `${iss}/token`, end_session_endpoint: `${iss}/logout`, jwks_uri: `${iss}/jwks`, response_types_supported: ["code"], subject_types_supported: ["public"], id_token_signing_alg_values_supported: ["RS256"], code_challenge_methods_supported: ["S256"] });
  }
  if (path === "/jwks") return reply(response, 200, { keys: [{ ...key.publicKey.export({ format: "jwk" }), kid: "dev", alg: "RS256", use: "sig" }] });
  if (path === "/authorize" && incoming.method === "GET") {
    const hidden = [...url.searchParams].map(([name, value]) => `<input type="hidden" name="${escaped(name)}" value="${escaped(value)}">`).join("");
    return reply(response, 200, `<!doctype html><html lang="en"><title>Sign in (development)</title><h1>Sign in (development)</h1><form method="post">${hidden}<label>Name <input name="who" value="alice" autofocus></label> <button>Sign in</button></form></html>`, { "Content-Type": TYPES[".html"] });
  }
  // There is no session to end: the form is shown for each sign-in.
  if (path === "/logout") return reply(response, 303, "", { Location: `${origin()}/signed-in` });
  const form = await bodyOf(incoming);
  if (path === "/authorize") {
    const code = randomBytes(16).toString("hex");
    codes.set(code, form);
    const back = new URL(form.get("redirect_uri"));
    back.searchParams.set("code", code);
    back.searchParams.set("state", form.get("state"));
    return reply(response, 303, "", { Location: back.href });
  }
  const asked = codes.get(form.get("code"));
  codes.delete(form.get("code"));
  const challenge = createHash("sha256").update(form.get("code_verifier") ?? "").digest("base64url");
  if (path !== "/token" || !asked || asked.get("code_challenge") !== challenge) return reply(response, 400, { error: "invalid_grant" });
  const now = Math.floor(Date.now() / 1000);
  const who = asked.get("who");
  const signed = `${base64url({ alg: "RS256", kid: "dev", typ: "JWT" })}.${base64url({ iss, aud: ROLES[role].client_id, sub: who, name: who, nonce: asked.get("nonce"), iat: now, exp: now + 3600 })}`;
  const signature = createSign("RSA-SHA256").update(signed).sign(key.privateKey).toString("base64url");
  return reply(response, 200, { access_token: await issue(role, who), token_type: "Bearer", expires_in: 3600, id_token: `${signed}.${signature}`, scope: asked.get("scope") });
}

function settings() {
  const of = (role) => ({ issuer: `${origin()}/${role}`, ...ROLES[role] });
  return {
    buyers: of("buyers"), operators: of("operators"), insecure_issuers: true,
    payments: [{ provider: "stripe", method: "page" }, { provider: "alipay", method: "page" }, { provider: "wechat", method: "code" }],
  };
}

const server = createServer((incoming, response) => {
  const url = new URL(incoming.url, "http://127.0.0.1");
  const [, first] = url.pathname.split("/");
  const answer = async () => {
    if (url.pathname.startsWith("/api/")) return proxy(incoming, response, url.pathname.slice(4) + url.search);
    // A page that a function renders; its policy names the engine's issuers, and these are here.
    if (table().rendered.some((page) => matches(page.path, url.pathname))) return proxy(incoming, response, url.pathname, { "content-security-policy": csp() });
    if (url.pathname === "/config.json") return reply(response, 200, settings());
    if (first in ROLES) return issuer(incoming, response, url, first, url.pathname.slice(first.length + 1));
    return file(response, url.pathname);
  };
  answer().catch((error) => reply(response, 500, { message: String(error) }));
});
server.listen(PORT, "127.0.0.1", () => console.log(`${origin()}/`));
