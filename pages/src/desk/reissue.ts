/** Which tickets of an order can be issued anew. */
import type { Order } from "../order/words.ts";

/** A ticket with its number: its place among all tickets of the order, line by line, from 1. */
export interface NumberedTicket {
  readonly number: number;
  readonly tier: string;
  readonly seat: string;
  readonly attendee: string | null;
}

/** The tickets that are good: of a paid order those that were not given back. Their numbers count the others too. */
export function reissuable(order: Order): NumberedTicket[] {
  const all = order.lines.flatMap(({ tier, tickets }) => tickets.map((ticket) => ({ tier, ...ticket })));
  return all.flatMap(({ tier, seat, attendee, refund }, at) =>
    order.state === "paid" && refund === undefined ? [{ number: at + 1, tier, seat, attendee: attendee ?? null }] : []);
}
