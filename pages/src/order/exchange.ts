/** Tickets that a buyer gives for others of the same sale: chosen beside the order, and kept in the tab until others are. */
import { getJson, setJson, tabStore } from "../shared/storage.ts";

/** What is given up, as the API takes it. */
export interface ExchangeBody {
  readonly order: string;
  readonly tickets: readonly { readonly tier: string; readonly seat: string }[];
}

/** The same, with what the tickets are worth by the terms of their purchase. */
export interface Exchange extends ExchangeBody {
  readonly worthMinor: number;
}

const keyOf = (sale: string): string => `onsale.exchange.${sale}`;

/** What is kept for a sale, if it is one. */
export function readExchange(value: unknown): Exchange | null {
  const kept = value as Partial<Exchange> | null;
  const isTicket = (one: unknown): boolean => {
    const { tier, seat } = (one ?? {}) as { tier?: unknown; seat?: unknown };
    return typeof tier === "string" && typeof seat === "string";
  };
  const isOne = typeof kept?.order === "string" && typeof kept.worthMinor === "number"
    && Array.isArray(kept.tickets) && kept.tickets.length > 0 && kept.tickets.every(isTicket);
  return isOne ? (kept as Exchange) : null;
}

/** The exchange that was begun in this tab; null if none was. */
export const keptExchange = (sale: string): Exchange | null => readExchange(getJson(tabStore, keyOf(sale)));

/** Keeps an exchange for a sale, or forgets it. */
export function keepExchange(sale: string, exchange: Exchange | null): void {
  if (exchange === null) tabStore.remove(keyOf(sale));
  else setJson(tabStore, keyOf(sale), exchange);
}
