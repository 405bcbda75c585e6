/** What a door says to a code: by the keys, the list of what was revoked, and what this device has let in. */
import { claimsOf, jwsOf, type Claims, type Jws } from "./code.ts";
import { isSigned, type TicketKey, type Verify } from "./verify.ts";

/** The list of a sale's revoked tickets, as far as its signature was checked. */
export interface RevokedList {
  readonly deployment: string;
  readonly sale: string;
  /** When it was made, by the server's clock. */
  readonly atMs: number;
  /** True if every ticket is void, because the sale was cancelled. */
  readonly isAll: boolean;
  /** The lowest issue that is valid, by `order/ticket`; 0 if none is. */
  readonly lowest: Readonly<Record<string, number>>;
}

/** A ticket that this device has let in. */
export interface Scan {
  readonly sale: string;
  readonly order: string;
  readonly ticket: number;
  /** The seat, or for general admission the tier. */
  readonly seat: string;
  readonly door: string;
  /** When, by the server's clock. */
  readonly atMs: number;
}

/** Where and when a ticket was let in first. */
export interface First {
  readonly door: string;
  readonly atMs: number;
}

/** Why a code lets nobody in. */
export type Refusal =
  | { readonly kind: "no-code" | "unknown-key" | "not-signed" | "other-deployment" }
  | { readonly kind: "other-sale"; readonly claims: Claims }
  | { readonly kind: "void" | "replaced"; readonly claims: Claims }
  | { readonly kind: "already"; readonly claims: Claims; readonly first: First };

/** What the device knows of itself. */
export interface Knowledge {
  readonly sale: string;
  readonly keys: readonly TicketKey[];
  readonly list: RevokedList;
}

/** The most bytes of a door's name. */
const MOST_NAME_BYTES = 32;

/** The name of a door as it is recorded; null if it cannot be one. */
export function doorName(text: string): string | null {
  const name = text.trim().replace(/\s+/g, " ");
  const isGood = name !== "" && new TextEncoder().encode(name).length <= MOST_NAME_BYTES && !/[\p{Cc}#]/u.test(name);
  return isGood ? name : null;
}

/** Name of a ticket among those of a sale. */
export const ticketKey = (order: string, ticket: number): string => `${order}/${ticket}`;

/**
 * Checks a code against what is known; what was scanned before is looked up elsewhere, in one step with recording it.
 * `verify` is for tests; else the browser's own is taken, or the library.
 */
export async function judged(text: string, { sale, keys, list }: Knowledge, verify?: Verify): Promise<Refusal | { readonly kind: "good"; readonly claims: Claims }> {
  const jws = jwsOf(text, "ticket");
  const claims = jws === null ? null : claimsOf(jws.payload);
  if (jws === null || claims === null) {
    return { kind: "no-code" };
  }
  switch (await isSigned(jws, keys, verify)) {
    case "unknown-key": return { kind: "unknown-key" };
    case "no": return { kind: "not-signed" };
    case "yes": break;
  }
  if (claims.deployment !== list.deployment) {
    return { kind: "other-deployment" };
  }
  if (claims.sale !== sale) {
    return { kind: "other-sale", claims };
  }
  const lowest = list.isAll ? 0 : list.lowest[ticketKey(claims.order, claims.ticket)];
  if (lowest !== undefined && (lowest === 0 || claims.issue < lowest)) {
    return { kind: lowest === 0 ? "void" : "replaced", claims };
  }
  return { kind: "good", claims };
}

/** A list from the payloads of its pages; null if one is not of the sale, or they are not the whole of one list. */
export function listOf(pages: readonly Jws["payload"][], sale: string): RevokedList | null {
  const [first] = pages;
  const d = first?.["d"];
  const isWhole = pages.every((page, at) => page["from"] === pages[at - 1]?.["next"]) && pages.at(-1)?.["next"] === undefined;
  if (typeof d !== "string" || !isWhole || pages.some((page) => page["s"] !== sale || page["d"] !== d || typeof page["at"] !== "number" || !Array.isArray(page["revoked"]))) {
    return null;
  }
  const lowest: Record<string, number> = {};
  for (const entry of pages.flatMap(({ revoked }) => revoked as unknown[])) {
    const [order, ticket, issue] = Array.isArray(entry) ? (entry as unknown[]) : [];
    if (typeof order !== "string" || !Number.isSafeInteger(ticket) || !Number.isSafeInteger(issue)) {
      return null;
    }
    lowest[ticketKey(order, ticket as number)] = issue as number;
  }
  // The oldest page says how old the whole is.
  return { deployment: d, sale, atMs: Math.min(...pages.map((page) => Number(page["at"]))) * 1000, isAll: pages.some((page) => page["all"] === true), lowest };
}

/** Of two lists of a sale the newer one: an answer from a cache may be older than what is kept. */
export const newerList = (kept: RevokedList | null, next: RevokedList): RevokedList =>
  kept !== null && kept.deployment === next.deployment && kept.sale === next.sale && kept.atMs > next.atMs ? kept : next;
