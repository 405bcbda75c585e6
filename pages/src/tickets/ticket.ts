/** The tickets of an order, from the order and, where they are there, their codes. */
import { buyer, reply, type Schemas } from "../shared/api.ts";
import { ticketState, type TicketState } from "../order/ticket-state.ts";
import type { Order } from "../order/words.ts";

type Line = Order["lines"][number];
/** What is needed of an order to show its tickets. */
export type TicketOrder = Pick<Order, "order" | "sale" | "state" | "pay_by"> & {
  readonly lines: readonly (Pick<Line, "tier" | "from" | "to"> & { readonly tickets: readonly Pick<Line["tickets"][number], "seat" | "attendee" | "refund">[] })[];
};

/** A ticket with its code, as the API answers it. */
export type CodedTicket = Pick<Schemas["IssuedTicket"], "number" | "state" | "issue" | "code" | "checked_in_at">;

/** The codes of an order. */
export const codesOf = async (order: string): Promise<readonly CodedTicket[]> =>
  (await reply(buyer.GET("/orders/{order}/tickets", { params: { path: { order } } }))).tickets;

/** Who asked for a refund, and so why. */
type AskedBy = Schemas["OrderRefund"]["asked_by"];
const REASONS: readonly AskedBy[] = ["buyer", "operator", "sale_cancelled", "dispute", "exchange", "outside"];

/** A ticket as it is shown. */
export interface ShownTicket {
  readonly number: number;
  readonly tier: string;
  readonly seat: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly attendee: string | null;
  readonly state: TicketState;
  readonly isReissued: boolean;
  readonly code: string | null;
  readonly checkedInAt: string | null;
  /** The refund by which it became void; null if it is good, or if an older code of it is what is void. */
  readonly refund: number | null;
}

/** Every ticket of an order. What the order says is void is void, whatever an older list of codes says. */
export function ticketsOf(order: Pick<TicketOrder, "lines">, codes: readonly CodedTicket[] | null): ShownTicket[] {
  const coded = new Map((codes ?? []).map((ticket) => [ticket.number, ticket]));
  const all = order.lines.flatMap(({ tier, from, to, tickets }) => tickets.map((ticket) => ({ tier, from, to, ...ticket })));
  return all.map(({ tier, from, to, seat, attendee, refund }, at): ShownTicket => {
    const known = coded.get(at + 1);
    const state = refund !== undefined ? "revoked" : known === undefined ? "valid" : ticketState(known.state);
    return {
      number: at + 1, tier, seat, from: from ?? null, to: to ?? null, attendee: attendee ?? null, state, isReissued: (known?.issue ?? 1) > 1,
      code: state === "revoked" ? null : (known?.code ?? null), checkedInAt: known?.checked_in_at ?? null, refund: refund ?? null,
    };
  });
}

/** Why tickets became void, by the number of their refund: asked for where any did. What is not known is not said. */
export async function reasonsOf(order: TicketOrder): Promise<ReadonlyMap<number, AskedBy>> {
  if (!order.lines.some(({ tickets }) => tickets.some(({ refund }) => refund !== undefined))) return new Map();
  const { refunds } = await reply(buyer.GET("/orders/{order}/refunds", { params: { path: { order: order.order } } }));
  return new Map(refunds.map(({ number, asked_by }) => [number, asked_by]));
}

/** The key of the words for a ticket that is void. */
export function voidKey(refund: number | null, reasons: ReadonlyMap<number, AskedBy>): "void-text" | `void-text.${AskedBy}` {
  const reason = refund === null ? undefined : reasons.get(refund);
  // A reason that is newer than this page has no words here.
  return reason !== undefined && REASONS.includes(reason) ? `void-text.${reason}` : "void-text";
}
