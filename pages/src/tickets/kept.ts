/**
 * Tickets that were seen are kept in this browser until their buyer signs out, and shown without a network. Of an order no
 * more is kept than what its tickets show: no price, no payment, no refund.
 */
import { eventOf, namesOf, type KnownSale } from "../order/sale.ts";
import { maskedName } from "../shared/event.ts";
import { forgetKept, keptAddress, openKept, orderOfAddress } from "../shared/kept-tickets.ts";
import { signedOutMark } from "../shared/session.ts";
import type { CodedTicket, TicketOrder } from "./ticket.ts";

/** What is kept of an order. */
export interface KeptTickets {
  readonly format: 1;
  readonly order: TicketOrder;
  readonly codes: readonly CodedTicket[];
  readonly sale: KnownSale | null;
  /** When the API answered this, by the server's clock. */
  readonly asOfMs: number;
  /** The mark of the last signing out before: nothing that is kept outlives the next. */
  readonly since: string;
}

/** What the tickets of an order show of it. */
export function shownOf({ order, sale, state, pay_by, lines }: TicketOrder): TicketOrder {
  return {
    order, sale, state, pay_by,
    lines: lines.map(({ tier, from, to, tickets }) => ({
      tier, ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }),
      tickets: tickets.map(({ seat, attendee, refund }) => ({
        seat, ...(attendee === undefined ? {} : { attendee: maskedName(attendee) }), ...(refund === undefined ? {} : { refund }),
      })),
    })),
  };
}

/** What tickets show of their sale: of its layout no more than where their own seats are. */
export const saleOf = (sale: KnownSale, seats: readonly string[]): KnownSale => {
  const { title, file, address } = sale;
  const event = eventOf(sale);
  const names = namesOf("", sale);
  return {
    title,
    file: {
      tiers: file.tiers.map(({ tier, name }) => ({ tier, name })),
      ...(file.stops == null ? {} : {
        stops: file.stops.map(({ stop, name, arrives, departs, time_zone }) => ({
          stop, name, ...(arrives == null ? {} : { arrives }), ...(departs == null ? {} : { departs }), ...(time_zone == null ? {} : { time_zone }),
        })),
      }),
      ...(file.merchant == null ? {} : { merchant: { merchant: file.merchant.merchant } }),
      ...(file.runs_on == null ? {} : { runs_on: file.runs_on }),
      ...(event === null ? {} : { event }),
    },
    ...(address == null ? {} : { address }),
    places: seats.flatMap((seat) => {
      const place = names.place(seat);
      return place === null ? [] : [[seat, place] as const];
    }),
  };
};

/** What was kept, read again; null if it is not of this form, or of before the last signing out. */
export function readKept(value: unknown, since: string): KeptTickets | null {
  const kept = value as Partial<KeptTickets> | null;
  return typeof kept === "object" && kept !== null && kept.format === 1 && kept.since === since && typeof kept.asOfMs === "number"
    && Array.isArray(kept.codes) && Array.isArray(kept.order?.lines) ? (kept as KeptTickets) : null;
}

/** Keeps the tickets of an order; true if they are kept. */
export async function keepTickets(buyer: string, kept: Omit<KeptTickets, "format" | "since">): Promise<boolean> {
  const seats = kept.order.lines.flatMap(({ tickets }) => tickets.map(({ seat }) => seat));
  const all: KeptTickets = { ...kept, order: shownOf(kept.order), sale: kept.sale && saleOf(kept.sale, seats), format: 1, since: signedOutMark("buyers") };
  try {
    const to = await openKept();
    await to?.put(keptAddress(buyer, kept.order.order), new Response(JSON.stringify(all), { headers: { "Content-Type": "application/json" } }));
    // Whoever signed out meanwhile has nothing kept.
    if (all.since !== signedOutMark("buyers")) await forgetKept();
    return to !== null;
  } catch {
    return false;
  }
}

/** The tickets of an order that are kept: those of a buyer, or where nobody is signed in, of whoever was the last. */
export async function keptTickets(buyer: string | null, order: string): Promise<KeptTickets | null> {
  try {
    const from = await openKept();
    for (const request of (await from?.keys()) ?? []) {
      if (orderOfAddress(request.url, buyer) === order) {
        return readKept(await (await from?.match(request))?.json(), signedOutMark("buyers"));
      }
    }
  } catch {
    // What cannot be read is not there.
  }
  return null;
}

/** Forgets an order that the API says is not this buyer's. */
export async function dropTickets(buyer: string, order: string): Promise<void> {
  await (await openKept())?.delete(keptAddress(buyer, order));
}
