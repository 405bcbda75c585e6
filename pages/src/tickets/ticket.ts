/** The tickets of an order, from the order and, where they are there, their codes. */
import { ask, OnsaleProblem, problem } from "../shared/api.ts";
import { ticketState, type TicketState } from "../order/ticket-state.ts";
import type { Order } from "../order/words.ts";

/** A ticket with its code, as `GET /orders/{order}/tickets` answers it. */
export interface CodedTicket {
  /** Its place among all tickets of the order, line by line, from 1. */
  readonly number: number;
  readonly state: string;
  /** How often it was issued. */
  readonly issue: number;
  /** What is in the picture; absent where the ticket is void. */
  readonly code?: string;
  readonly checked_in_at?: string;
}

/** The codes of an order: null if a deployment makes none. */
export async function codesOf(order: string): Promise<readonly CodedTicket[] | null> {
  try {
    const response = await ask(`/orders/${encodeURIComponent(order)}/tickets`, { role: "buyers" });
    const body = (await response.json()) as { tickets?: readonly CodedTicket[] };
    return Array.isArray(body.tickets) ? body.tickets : null;
  } catch (thrown) {
    if (thrown instanceof OnsaleProblem && thrown.status === 404) {
      return null;
    }
    throw problem(thrown);
  }
}

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
}

/** Every ticket of an order. What the order says is void is void, whatever an older list of codes says. */
export function ticketsOf(order: Order, codes: readonly CodedTicket[] | null): ShownTicket[] {
  const coded = new Map((codes ?? []).map((ticket) => [ticket.number, ticket]));
  const all = order.lines.flatMap(({ tier, from, to, tickets }) => tickets.map((ticket) => ({ tier, from, to, ...ticket })));
  return all.map(({ tier, from, to, seat, attendee, refund }, at): ShownTicket => {
    const known = coded.get(at + 1);
    const state = refund !== undefined ? "revoked" : known === undefined ? "valid" : ticketState(known.state);
    return {
      number: at + 1, tier, seat, from: from ?? null, to: to ?? null, attendee: attendee ?? null, state, isReissued: (known?.issue ?? 1) > 1,
      code: state === "revoked" ? null : (known?.code ?? null), checkedInAt: known?.checked_in_at ?? null,
    };
  });
}
