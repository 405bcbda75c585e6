/**
 * Codes of tickets, and lists of what was revoked: compact JWS, signed with Ed25519. What is read here is not believed
 * before {@link isSigned} of `verify.ts` has said so.
 */

/** A compact JWS, taken apart. */
export interface Jws {
  /** Name of the key that is said to have signed it. */
  readonly kid: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /** What the signature is over: header and payload as they were sent. */
  readonly signed: Uint8Array<ArrayBuffer>;
  /** 64 bytes. */
  readonly signature: Uint8Array<ArrayBuffer>;
}

/** What a ticket's code says. */
export interface Claims {
  readonly deployment: string;
  readonly sale: string;
  readonly tier: string;
  /** Null for general admission. */
  readonly seat: string | null;
  /** Journey of a train's ticket: its stops by id. */
  readonly legs: readonly [string, string] | null;
  readonly order: string;
  /** Number of the ticket in its order, from 1. */
  readonly ticket: number;
  /** How often it was issued: 1 at first. */
  readonly issue: number;
}

/** The most letters of a text that is looked at: a QR picture holds fewer. */
const MOST_LETTERS = 4_096;
const SIGNATURE_BYTES = 64;

/** The bytes of a text in base64url; null if it is none, or the same bytes are written in another way. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[A-Za-z0-9_-]+$/.test(text) || text.length % 4 === 1) {
    return null;
  }
  const bytes = Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
  // The last letter has bits that no byte needs: were they not looked at, a code with one of them changed would pass.
  return base64url(bytes) === text ? bytes : null;
}

/** Bytes in base64url. */
export function base64url(bytes: Uint8Array): string {
  const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(letters).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

function objectOf(bytes: Uint8Array | null): Readonly<Record<string, unknown>> | null {
  if (bytes === null) {
    return null;
  }
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : null;
  } catch {
    return null;
  }
}

/** Takes a text apart that is to be a JWS of a type (`ticket`, `revoked`); null if it is none. */
export function jwsOf(text: string, type: string): Jws | null {
  const parts = text.length > MOST_LETTERS && type === "ticket" ? [] : text.trim().split(".");
  const [head = "", body = "", tail = ""] = parts;
  const header = objectOf(bytesOf(head));
  const payload = objectOf(bytesOf(body));
  const signature = bytesOf(tail);
  const isWhole = parts.length === 3 && header !== null && payload !== null && signature?.length === SIGNATURE_BYTES;
  if (!isWhole || header["alg"] !== "EdDSA" || header["typ"] !== type || typeof header["kid"] !== "string") {
    return null;
  }
  return { kid: header["kid"], payload, signed: new TextEncoder().encode(`${head}.${body}`), signature };
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
const isJourney = (value: unknown): value is readonly [string, string] => Array.isArray(value) && value.length === 2 && value.every(isText);

/** What the payload of a ticket's code says; null if it lacks something. */
export function claimsOf(payload: Jws["payload"]): Claims | null {
  const { d, s, t, p = null, l = null, o, n, i } = payload;
  if (!isText(d) || !isText(s) || !isText(t) || !isText(o) || !isCount(n) || !isCount(i)) {
    return null;
  }
  return (p === null || isText(p)) && (l === null || isJourney(l))
    ? { deployment: d, sale: s, tier: t, seat: p, legs: l, order: o, ticket: n, issue: i }
    : null;
}
