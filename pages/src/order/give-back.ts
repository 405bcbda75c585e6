/** What may be given back of an order, or exchanged, and what it is worth. */
import type { Order, OrderRefund } from "./words.ts";

/** A ticket that is still good. */
export interface LiveTicket {
  readonly tier: string;
  readonly seat: string;
  readonly attendee: string | null;
  readonly priceMinor: number;
  /** What is kept if its buyer gives it back, or exchanges it, now; null if the terms do not allow that, or not any more. */
  readonly feeMinor: number | null;
}

/** The terms of a line: of giving back, or of exchanging. */
export type Terms = "refundable" | "exchangeable";

/** The tickets of an order that are still good, by line. */
export function liveTickets(order: Order, nowMs: number, of: Terms = "refundable"): LiveTicket[] {
  if (order.state !== "paid") {
    return [];
  }
  return order.lines.flatMap(({ tier, price_minor, tickets, [of]: terms }) => {
    const isAllowed = terms !== undefined && nowMs < Date.parse(terms.until);
    return tickets.filter(({ refund }) => refund === undefined).map(({ seat, attendee }) => ({
      tier, seat, attendee: attendee ?? null, priceMinor: price_minor,
      feeMinor: isAllowed ? Math.min(terms.fee_minor, price_minor) : null,
    }));
  });
}

/** When the last of an order's tickets could, or can, be given back or exchanged; null if none ever could. */
export function lastChance(order: Order, of: Terms = "refundable"): string | null {
  const ends = order.lines.flatMap(({ [of]: terms }) => (terms === undefined ? [] : [terms.until]));
  return ends.sort((one, other) => Date.parse(other) - Date.parse(one))[0] ?? null;
}

/** Sums over tickets, in minor units. */
export interface Totals {
  readonly priceMinor: number;
  readonly feeMinor: number;
  readonly backMinor: number;
}

/** What tickets cost, what is kept of it, and what comes back. */
export function totalsOf(tickets: readonly LiveTicket[]): Totals {
  const priceMinor = tickets.reduce((sum, ticket) => sum + ticket.priceMinor, 0);
  const feeMinor = tickets.reduce((sum, ticket) => sum + (ticket.feeMinor ?? 0), 0);
  return { priceMinor, feeMinor, backMinor: priceMinor - feeMinor };
}

/** A ticket in a set of chosen ones. */
export const keyOf = (ticket: { readonly tier: string; readonly seat: string }): string => JSON.stringify([ticket.tier, ticket.seat]);

/** Orders by number, the newest first; of two copies of an order the one that changed later. */
export function merged(known: readonly Order[], more: readonly Order[]): Order[] {
  const byNumber = new Map(known.map((order) => [order.order, order]));
  for (const order of more) {
    const before = byNumber.get(order.order);
    if (before === undefined || Date.parse(before.changed_at) <= Date.parse(order.changed_at)) {
      // One order by itself has its payments, a list has not: what is known of them stays.
      byNumber.set(order.order, before?.payments !== undefined && order.payments === undefined ? { ...order, payments: before.payments } : order);
    }
  }
  return [...byNumber.values()].sort((one, other) => (BigInt(one.order) < BigInt(other.order) ? 1 : -1));
}

/** The payment that paid an order. */
export const paymentOf = ({ payments }: Pick<PaidOrder, "payments">) => (payments ?? []).find(({ outcome }) => outcome === "accepted");

/** What an order cost and, where they are told, its payments. */
export interface PaidOrder {
  readonly amount_minor: number;
  readonly payments?: readonly NonNullable<Order["payments"]>[number][];
}

/** What a refund took of the payment: what goes back, and what the order keeps that its tickets were exchanged for. */
export type Taken = Pick<OrderRefund, "amount_minor" | "kept_minor">;

/**
 * What is left of the payment of an order, in minor units: the engine refuses to give back more, and tickets are worth no
 * more in an exchange. Where the payments are not told, an order in a list, its amount was paid.
 */
export function leftOf(order: PaidOrder, refunds: readonly Taken[]): number {
  const paid = order.payments === undefined ? order.amount_minor : paymentOf(order)?.amount_minor ?? 0;
  const gone = refunds.reduce((sum, { amount_minor, kept_minor }) => sum + amount_minor + (kept_minor ?? 0), 0);
  return Math.max(0, paid - gone);
}
