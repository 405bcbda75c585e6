/** Tickets that a buyer gives for others of the same sale: chosen beside the order, and kept in the tab until others are. */
import { getJson, setJson, tabStore } from "../shared/storage.ts";
import { keyOf as ticketKey, type Totals } from "./give-back.ts";
import type { Order } from "./words.ts";

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

/** What an exchange does to a buyer's money, in minor units. */
export interface ExchangeSums {
  /** What was paid for the tickets that are given. */
  readonly priceMinor: number;
  readonly feeMinor: number;
  /** What their worth lacks, because it went back before. */
  readonly goneMinor: number;
  readonly worthMinor: number;
  readonly newMinor: number;
  /** True if their worth pays the new tickets. One payment pays an order: a part of the price is never paid so. */
  readonly pays: boolean;
  /** What the buyer pays for the new tickets, in full. */
  readonly chargedMinor: number;
  /** What goes back of the payment of the old ones. */
  readonly backMinor: number;
}

/** The sums of an exchange of tickets that are worth so much for tickets at a price. */
export function exchangeSums({ priceMinor, feeMinor }: Pick<Totals, "priceMinor" | "feeMinor">, worthMinor: number, newMinor: number): ExchangeSums {
  const pays = newMinor <= worthMinor;
  return {
    priceMinor, feeMinor, goneMinor: Math.max(0, priceMinor - feeMinor - worthMinor), worthMinor, newMinor, pays,
    chargedMinor: pays ? 0 : newMinor, backMinor: pays ? worthMinor - newMinor : worthMinor,
  };
}

/** What tickets of an order cost, and the fee of exchanging them, also once they are given up. */
export function pricesOf(order: Order, tickets: ExchangeBody["tickets"]): Pick<Totals, "priceMinor" | "feeMinor"> {
  const given = new Set(tickets.map(ticketKey));
  let [priceMinor, feeMinor] = [0, 0];
  for (const { tier, price_minor, exchangeable, tickets: all } of order.lines) {
    const count = all.filter(({ seat }) => given.has(ticketKey({ tier, seat }))).length;
    priceMinor += count * price_minor;
    feeMinor += count * Math.min(exchangeable?.fee_minor ?? 0, price_minor);
  }
  return { priceMinor, feeMinor };
}

/** The order whose money paid this one, by the name of the payment; null if a provider was paid. */
export function movedFrom(payment: string): string | null {
  return /^(\d+)-for-\d+$/.exec(payment)?.[1] ?? null;
}
