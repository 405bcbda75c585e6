/** Which orders are held and wait to be paid. */
import type { Schemas } from "../shared/api.ts";

type Order = Pick<Schemas["OrderReply"], "order" | "sale" | "state" | "pay_by" | "lines">;

/** An order that is held. */
export interface Held {
  readonly order: string;
  readonly sale: string;
  readonly payByMs: number;
  readonly tickets: number;
  /** Where its journey begins and ends, on a train. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** The orders that may be paid still, by the server's clock, the one that ends first before the others. */
export function heldOrders(orders: readonly Order[], nowMs: number, except?: string): Held[] {
  return orders
    .filter(({ order, state }) => state === "pending" && order !== except)
    .map(({ order, sale, pay_by, lines }) => ({
      order, sale, payByMs: Date.parse(pay_by), tickets: lines.reduce((sum, { tickets }) => sum + tickets.length, 0),
      ...(lines[0]?.from === undefined ? {} : { from: lines[0].from, to: lines[0].to }),
    }))
    .filter(({ payByMs }) => payByMs > nowMs)
    .sort((one, other) => one.payByMs - other.payByMs);
}
