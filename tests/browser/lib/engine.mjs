/**
 * An engine to test with: `onsale up` on a free port with a data directory of its own, and where it serves no pages
 * itself, the development server of the pages before it. `ONSALE_URL` names one that runs already.
 */
import { execFile, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { PATIENCE_MS, REPOSITORY, startProgram } from "./chromium.mjs";

const execute = promisify(execFile);

/** Runs a program, for no longer than a condition is waited for, unless `timeout` says otherwise. */
const run = (program, args, options = {}) => execute(program, args, { timeout: PATIENCE_MS, ...options });

/** The program `onsale`: ONSALE_BIN, or what the workspace's build made. */
export function onsaleProgram() {
  if (process.env.ONSALE_BIN) return process.env.ONSALE_BIN;
  return join(execFileSync(join(REPOSITORY, "scripts/target-dir"), { encoding: "utf8" }).trim(), "debug/onsale");
}

/** The key of the local engine's Stripe, a fake, and a version of the API that it is asked by. */
const STRIPE_HEADERS = { authorization: "Bearer sk_test_onsale", "stripe-version": "2025-03-31.basil" };

/** Origins to which a local engine that serves no pages lets a payment come back. */
const RETURN_PORTS = [8080, 3000];

async function answers(url) {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS) })).ok;
  } catch {
    return false;
  }
}

/** The pages before an engine: its own, or those of the development server. */
async function startPages(gateway, program, data) {
  if (await answers(`${gateway}/config.json`)) return { url: gateway, stop: async () => {} };
  for (const port of RETURN_PORTS) {
    try {
      const { stop } = await startProgram(process.execPath, ["dev.mjs"], /http:\/\/127\.0\.0\.1:\d+\//, {
        cwd: join(REPOSITORY, "pages"),
        env: { ONSALE_URL: gateway, ONSALE_BIN: program, ONSALE_DATA_DIR: data, PORT: String(port) },
      });
      return { url: `http://127.0.0.1:${port}`, stop };
    } catch (error) {
      if (!String(error).includes("EADDRINUSE")) throw error;
    }
  }
  throw new Error(`the ports ${RETURN_PORTS.join(" and ")} are taken`);
}

/** The pictures of the samples in base64, by hash. */
function samplePictures() {
  const folder = join(REPOSITORY, "sales/pictures");
  const files = readdirSync(folder).filter((name) => name.endsWith(".jpg")).map((name) => readFileSync(join(folder, name)));
  return files.map((bytes) => [createHash("sha256").update(bytes).digest("hex"), bytes.toString("base64")]);
}

/** An engine and what tests do with it beside the browser: as an operator, or as other buyers. */
export class Engine {
  /** @param {{url: string, gateway: string, data: string, program: string}} where */
  constructor(where) {
    Object.assign(this, where);
    this.tokens = new Map();
  }

  /** A development token of a buyer, or with `null` of an operator. */
  async token(user) {
    if (!this.tokens.has(user)) {
      const who = user === null ? ["--operator"] : ["--user", user];
      this.tokens.set(user, run(this.program, ["token", ...who, "--json", "--data-dir", this.data]).then(({ stdout }) => JSON.parse(stdout).token));
    }
    return this.tokens.get(user);
  }

  /**
   * A request to the API: its status and document.
   * @param {string} path
   * @param {{method?: string, body?: unknown, as?: string | null, headers?: Record<string, string>}} options `as`: a buyer, `null` an operator
   */
  async ask(path, { method, body, as, headers = {} } = {}) {
    if (as !== undefined) headers = { ...headers, authorization: `Bearer ${await this.token(as)}` };
    if (body !== undefined) headers = { ...headers, "content-type": "application/json" };
    const answer = await fetch(this.gateway + path, { method: method ?? (body === undefined ? "GET" : "POST"), headers, body: body === undefined ? undefined : JSON.stringify(body), signal: AbortSignal.timeout(PATIENCE_MS) });
    const text = await answer.text();
    return { status: answer.status, document: text.startsWith("{") ? JSON.parse(text) : text, headers: answer.headers };
  }

  /** A request that must succeed: its document. A store of a busy machine may not answer: then it is repeated, as the answer says. */
  async do(path, options) {
    const until = Date.now() + PATIENCE_MS;
    let { status, document } = await this.ask(path, options);
    while (status === 503 && document.retry_after_seconds !== undefined && Date.now() < until) {
      await sleep(1000 * document.retry_after_seconds);
      ({ status, document } = await this.ask(path, options));
    }
    if (status >= 300) throw new Error(`${path}: ${status} ${JSON.stringify(document)}`);
    return document;
  }

  /** Publishes a sale file, and before it those pictures that it names and the samples have. */
  async publish(file) {
    const named = new Set((file.event?.about?.images ?? []).map(({ sha256 }) => sha256));
    for (const [hash, data] of named.size === 0 ? [] : samplePictures()) {
      if (named.has(hash)) await this.do(`/pictures/${hash}`, { method: "PUT", body: { data }, as: null });
    }
    return this.do(`/sales/${file.sale}`, { method: "PUT", body: file, as: null });
  }

  /** Keeps a picture, a JPEG file in base64; its hash. */
  async keepPicture(data) {
    const hash = createHash("sha256").update(Buffer.from(data, "base64")).digest("hex");
    await this.do(`/pictures/${hash}`, { method: "PUT", body: { data }, as: null });
    return hash;
  }

  /** Gives a command to the waiting room of a sale. */
  command(sale, body) {
    return this.do(`/sales/${sale}/room/commands`, { body, as: null });
  }

  /** Asks again and again until the answer is as wanted, and gives it. */
  async until(path, wanted, options = {}) {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      const { document } = await this.ask(path, options);
      if (wanted(document)) return document;
      if (Date.now() > deadline) throw new Error(`${path} is still ${JSON.stringify(document)}`);
      await sleep(100);
    }
  }

  /** A crowd that buys a sale out, by `onsale rush`; ends when nothing is left. */
  rush(sale, arrivals, withinSeconds) {
    return run(this.program, ["rush", "--sale", sale, "--arrivals", String(arrivals), "--within", String(withinSeconds), "--mix", "paying", "--json", "--data-dir", this.data], { maxBuffer: 1 << 26, timeout: withinSeconds * 1000 + 2 * PATIENCE_MS });
  }

  /** An order of a buyer, held by the API, in a sale without a waiting room. */
  async order(sale, buyer, line, tickets = line.seats?.length ?? line.best.count) {
    const { token } = await this.until(`/sales/${sale}/admissions`, ({ token: given }) => given !== undefined, { body: { tickets }, as: buyer });
    return this.do(`/sales/${sale}/orders`, { body: { admission: token, lines: [line] }, as: buyer });
  }

  /** The same, paid, with the provider's name of the `payment`. */
  async paidOrder(sale, buyer, line) {
    const { order } = await this.order(sale, buyer, line);
    const { stdout } = await run(this.program, ["pay", "--order", order, "--json", "--data-dir", this.data]);
    const paid = await this.until(`/orders/${order}`, (document) => document.state === "paid", { as: buyer });
    return { ...paid, payment: JSON.parse(stdout).payment };
  }

  /** A request to the fake Stripe of the engine, with a form a POST: its document. */
  async stripe(path, form) {
    const { provider } = JSON.parse(readFileSync(join(this.data, "endpoints.json"), "utf8"));
    const body = form && new URLSearchParams(form);
    const answer = await fetch(provider + path, { method: form ? "POST" : "GET", headers: STRIPE_HEADERS, body, signal: AbortSignal.timeout(PATIENCE_MS) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  /** The id that the engine's payments carry, read from one that it starts for an order. */
  async deployment(order, buyer) {
    const { url } = await this.do(`/orders/${order}/payments`, { body: { provider: "stripe", return_url: `${this.url}/checkout/${order}` }, as: buyer });
    const { metadata } = await this.stripe(`/v1/checkout/sessions/${new URL(url).pathname.split("/").at(-1)}`);
    return metadata.onsale_deployment;
  }

  /** Captures a payment that carries a deployment's id and names an order, and tells the engine as Stripe does: its id, and the outcome. */
  async capture(deployment, order, amountMinor) {
    const intent = await this.stripe("/v1/payment_intents", { amount: String(amountMinor), currency: "cny", confirm: "true", "metadata[onsale_deployment]": deployment, "metadata[onsale_order]": order });
    return { payment: intent.id, ...(await this.tell({ id: `evt_${intent.id}`, object: "event", type: "payment_intent.succeeded", created: intent.created, data: { object: intent } })) };
  }

  /** Somebody sends some of a payment back in Stripe's dashboard, of which Stripe tells the engine unless `tells` is false. */
  async refundByHand(payment, amountMinor, { tells = true } = {}) {
    const refund = await this.stripe("/v1/refunds", { payment_intent: payment, amount: String(amountMinor) });
    if (tells) await this.tell({ id: `evt_${refund.id}`, object: "event", type: "refund.created", created: refund.created, data: { object: refund } });
  }

  /** Sends the engine an event of Stripe's, signed: its answer. */
  async tell(event) {
    const body = JSON.stringify(event);
    const signing = run(this.program, ["sign", "--data-dir", this.data]);
    signing.child.stdin.end(body);
    const signature = (await signing).stdout.trim();
    const answer = await fetch(`${this.gateway}/payments/stripe/callback`, { method: "POST", headers: { "content-type": "application/json", "stripe-signature": signature }, body, signal: AbortSignal.timeout(PATIENCE_MS) });
    if (!answer.ok) throw new Error(`the callback of ${event.id}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  /** An operator at the command line says what becomes of a payment of no order: `send-back` or `explain`. */
  decide(word, order, payment) {
    return run(this.program, ["payments", word, order, "stripe", payment, "--by", "otto", "--reason", "said by another", "--data-dir", this.data]);
  }
}

/** What a process passes on to those that it starts, so that all test files share one engine. */
const SHARED = "ONSALE_BROWSER_ENGINE";

/** The engine of this test file, and how to stop it if it is its own: one that is started otherwise (`args`) is. */
export async function startEngine(args = []) {
  const isOwn = args.length > 0;
  if (process.env[SHARED] && !isOwn) return { engine: new Engine(JSON.parse(process.env[SHARED])), stop: async () => {} };
  const program = onsaleProgram();
  if (process.env.ONSALE_URL && !isOwn) {
    const url = process.env.ONSALE_URL.replace(/\/$/, "");
    const data = process.env.ONSALE_DATA_DIR ?? join(REPOSITORY, ".onsale/data");
    return { engine: new Engine({ url, gateway: url, data, program }), stop: async () => {} };
  }
  const data = mkdtempSync(join(tmpdir(), "onsale-browser-"));
  const dist = join(REPOSITORY, "pages/dist");
  const started = [];
  const stop = async () => {
    for (const end of started.reverse()) await end();
    rmSync(data, { recursive: true, force: true });
  };
  try {
    const up = await startProgram(program, ["up", "--port", "0", "--json", "--ephemeral", "--data-dir", data, ...args], /^\{.*\}$/m, {
      cwd: REPOSITORY, env: { ONSALE_LOG: process.env.ONSALE_LOG ?? "warn", ...(existsSync(dist) ? { ONSALE_PAGES: dist } : {}) },
    });
    started.push(up.stop);
    const { gateway } = JSON.parse(up.match[0]);
    const pages = await startPages(gateway, program, data);
    started.push(pages.stop);
    return { engine: new Engine({ url: pages.url, gateway, data, program }), stop };
  } catch (error) {
    // An engine that goes on would keep this process alive for ever.
    await stop();
    throw error;
  }
}

/** The environment by which a process that this one starts finds the engine. */
export const shared = (engine) => ({ [SHARED]: JSON.stringify({ url: engine.url, gateway: engine.gateway, data: engine.data, program: engine.program }) });
