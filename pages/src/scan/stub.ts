/** For tests: a deployment that signs tickets and lists, and a server of check-ins as the API's contract has it. */
import { createHash, generateKeyPairSync, sign, type KeyObject } from "node:crypto";

import { OnsaleProblem } from "../shared/api.ts";
import { claimsOf, jwsOf } from "./code.ts";
import { ticketKey, type First } from "./door.ts";
import type { Get } from "./lists.ts";
import type { CheckIn, CheckInResult, Post } from "./send.ts";
import { isSigned, keysOf } from "./verify.ts";

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A ticket, as far as its code has it. */
export interface Ticket {
  readonly order?: string;
  readonly ticket?: number;
  readonly issue?: number;
  readonly sale?: string;
  readonly seat?: string;
  readonly deployment?: string;
}

/** A deployment with one key. */
export class Deployment {
  readonly #key: KeyObject;
  readonly jwk: { readonly kty: "OKP"; readonly crv: "Ed25519"; readonly kid: string; readonly x: string };
  /** What the list says, by order and ticket. */
  readonly revoked = new Map<string, [string, number, number]>();
  /** Every scan that is in the record, in the order in which it came. */
  readonly record: (First & { readonly key: string })[] = [];
  atSeconds = 1_000;
  requests = 0;

  constructor(readonly name = "here") {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const { x = "" } = publicKey.export({ format: "jwk" });
    this.#key = privateKey;
    this.jwk = { kty: "OKP", crv: "Ed25519", kid: createHash("sha256").update(JSON.stringify({ crv: "Ed25519", kty: "OKP", x })).digest("base64url").slice(0, 16), x };
  }

  jws(typ: string, payload: unknown): string {
    const signed = `${encoded({ alg: "EdDSA", kid: this.jwk.kid, typ })}.${encoded(payload)}`;
    return `${signed}.${sign(null, Buffer.from(signed), this.#key).toString("base64url")}`;
  }

  code({ order = "7", ticket = 1, issue = 1, sale = "hall", seat = "A-1", deployment = this.name }: Ticket = {}): string {
    return this.jws("ticket", { d: deployment, s: sale, t: "stalls", p: seat, o: order, n: ticket, i: issue });
  }

  revoke(order: string, ticket: number, lowest: number): void {
    this.revoked.set(ticketKey(order, ticket), [order, ticket, lowest]);
    this.atSeconds += 1;
  }

  list(sale = "hall"): string {
    return this.jws("revoked", { d: this.name, s: sale, at: this.atSeconds, revoked: [...this.revoked.values()] });
  }

  /** The public routes. */
  readonly get: Get = async (path) => {
    if (path === "/ticket-keys") return { keys: [this.jwk] };
    if (path === "/sales/hall/revoked") return { list: this.list() };
    throw OnsaleProblem.fromResponse(404, null, null);
  };

  async #one({ code, door, at }: CheckIn): Promise<CheckInResult> {
    const jws = jwsOf(code, "ticket");
    const claims = jws === null ? null : claimsOf(jws.payload);
    if (jws === null || claims === null || (await isSigned(jws, keysOf({ keys: [this.jwk] }))) !== "yes") return { outcome: "invalid" };
    const key = ticketKey(claims.order, claims.ticket);
    const atMs = Date.parse(at);
    const of = { order: claims.order, ticket: claims.ticket };
    const first = this.record.find((scan) => scan.key === key);
    const firstly = first === undefined ? {} : { first_at: new Date(first.atMs).toISOString(), first_door: first.door };
    if (this.record.some((scan) => scan.key === key && scan.door === door && scan.atMs === atMs)) return { outcome: "repeated", ...of, ...firstly };
    const lowest = this.revoked.get(key)?.[2];
    if (lowest !== undefined && (lowest === 0 || claims.issue < lowest)) return { outcome: "revoked", ...of };
    this.record.push({ key, door, atMs });
    return first === undefined ? { outcome: "admitted", ...of } : { outcome: "already-admitted", ...of, ...firstly };
  }

  /** The route of check-ins. */
  readonly post: Post = async (_sale, checkIns) => {
    this.requests += 1;
    const results: CheckInResult[] = [];
    for (const checkIn of checkIns) results.push(await this.#one(checkIn));
    return results;
  };
}
