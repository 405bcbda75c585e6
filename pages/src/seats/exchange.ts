/** What an exchange comes to: the tickets that go, those that come, and the money. */
import { type ExchangeBody, type ExchangeSums, exchangeSums } from "../order/exchange.ts";
import { type LiveTicket, keyOf, leftOf, liveTickets, paymentOf, totalsOf } from "../order/give-back.ts";
import type { Order, OrderRefund } from "../order/words.ts";
import { type Choice, ticketTiers, ticketsIn } from "./choice.ts";
import { type Sale, priceOf } from "./labels.ts";

/** Tickets that come, of one price. Whether a place is known, or chosen once they are asked for, their kind says. */
export interface Coming {
  readonly kind: "seat" | "standing" | "best" | "together" | "apart" | "pattern";
  /** The name of the category. */
  readonly tier: string;
  readonly count: number;
  /** The seat, or the letters of a pattern; empty where there is neither. */
  readonly label: string;
  /** The price of each; null if it is not sold. */
  readonly priceMinor: number | null;
}

/** The tickets that a choice would get. */
export function comingOf(sale: Sale, choice: Choice): Coming[] {
  const of = (id: string): Pick<Coming, "tier" | "priceMinor"> & { readonly isStanding: boolean } => {
    const tier = sale.file.tiers.find((one) => one.tier === id);
    return { tier: tier?.name ?? id, priceMinor: tier === undefined ? null : priceOf(tier, choice.journey), isStanding: Boolean(tier?.general_admission) };
  };
  if (choice.way === "map") {
    const seats = choice.seats.map(({ tier, label }) => ({ tier, count: 1, label }));
    const spots = Object.entries(choice.spots).filter(([, count]) => count > 0).map(([tier, count]) => ({ tier, count, label: "" }));
    return [...seats, ...spots].map(({ tier: id, count, label }) => {
      const { tier, priceMinor } = of(id);
      return { kind: label === "" ? "standing" : "seat", tier, count, label, priceMinor };
    });
  }
  const { tier, priceMinor, isStanding } = of(choice.tier);
  const count = ticketsIn(choice);
  if (choice.way === "pattern") return [{ kind: "pattern", tier, count, label: choice.pattern.map(({ column }) => column).join(", "), priceMinor }];
  const kind = isStanding ? "standing" : count === 1 ? "best" : choice.isTogether ? "together" : "apart";
  return [{ kind, tier, count, label: "", priceMinor }];
}

/** Everything that somebody should know before an exchange; or why there is none. */
export type Review =
  | { readonly kind: "gone" | "over" | "unsold" }
  | { readonly kind: "known"; readonly given: readonly LiveTicket[]; readonly coming: readonly Coming[]; readonly sums: ExchangeSums; readonly provider: string | null };

/** What is known of the order that has the tickets, and of the sale, now. */
export interface Known {
  readonly order: Order;
  readonly refunds: readonly OrderRefund[];
  readonly sale: Sale;
}

/** What the exchange of these tickets for this choice comes to, by what is known now. */
export function reviewOf({ order, refunds, sale }: Known, choice: Choice, exchange: ExchangeBody, nowMs: number): Review {
  const live = new Map(liveTickets(order, nowMs, "exchangeable").map((ticket) => [keyOf(ticket), ticket]));
  const given = exchange.tickets.flatMap((ticket) => live.get(keyOf(ticket)) ?? []);
  if (given.length < exchange.tickets.length) return { kind: "gone" };
  if (given.some(({ feeMinor }) => feeMinor === null)) return { kind: "over" };
  const prices = ticketTiers(choice).map((id) => {
    const tier = sale.file.tiers.find((one) => one.tier === id);
    return tier === undefined ? null : priceOf(tier, choice.journey);
  });
  if (prices.includes(null)) return { kind: "unsold" };
  const totals = totalsOf(given);
  const worthMinor = Math.min(totals.backMinor, leftOf(order, refunds));
  const newMinor = prices.reduce<number>((sum, price) => sum + (price ?? 0), 0);
  return { kind: "known", given, coming: comingOf(sale, choice), sums: exchangeSums(totals, worthMinor, newMinor), provider: paymentOf(order)?.provider ?? null };
}
