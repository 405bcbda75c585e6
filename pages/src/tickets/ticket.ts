/** The tickets of an order, from the order and, where they are there, their codes. */
import { ask, OnsaleProblem, problem } from "../shared/api.ts";
import type { Order } from "../order/words.ts";

/** A ticket with its code, as `GET /orders/{order}/tickets` answers it. */
export interface CodedTicket {
  readonly tier: string;
  readonly seat: string;
  readonly from?: string;
  readonly to?: string;
  readonly attendee?: string;
  /** `valid`, or why it is not: `refunded`, `used`. */
  readonly state: string;
  /** What is in the picture; absent where the ticket is void. */
  readonly code?: string;
}

/** The codes of an order: null if the API has no such route yet. */
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
  readonly tier: string;
  readonly seat: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly attendee: string | null;
  readonly state: "valid" | "void" | "used";
  readonly code: string | null;
}

const STATES: Readonly<Record<string, ShownTicket["state"]>> = { valid: "valid", used: "used", checked_in: "used" };

/** Every ticket of an order. What the order says is void is void, whatever an older list of codes says. */
export function ticketsOf(order: Order, codes: readonly CodedTicket[] | null): ShownTicket[] {
  const coded = new Map((codes ?? []).map((ticket) => [JSON.stringify([ticket.tier, ticket.seat]), ticket]));
  return order.lines.flatMap(({ tier, from, to, tickets }) => tickets.map(({ seat, attendee, refund }): ShownTicket => {
    const known = coded.get(JSON.stringify([tier, seat]));
    const state = refund !== undefined ? "void" : known === undefined ? "valid" : (STATES[known.state] ?? "void");
    return {
      tier, seat, from: from ?? null, to: to ?? null, attendee: attendee ?? null, state,
      code: state === "void" ? null : (known?.code ?? null),
    };
  }));
}
