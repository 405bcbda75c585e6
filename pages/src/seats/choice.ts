/** What a buyer has chosen, and whether it can be ordered. */
import type { Line } from "./ordering.ts";

/** Most seats and lines of an order, whatever the sale allows. */
export const MOST_TICKETS = 10;
export const MOST_LINES = 4;

/** A place of a pattern: a column's letter in the first row or the next. */
export interface PatternPlace {
  readonly column: string;
  readonly row: 0 | 1;
}

/** A journey; none at a concert. */
export interface Journey {
  readonly from: string;
  readonly to: string;
}

/** A seat that was chosen by name. */
export interface ChosenSeat {
  readonly tier: string;
  readonly seat: string;
  /** Section, row and number as people say them. */
  readonly label: string;
}

/** How tickets are chosen. */
export type Way = "best" | "pattern" | "map";

/** Everything that a buyer has chosen; kept in the tab. */
export interface Choice {
  readonly way: Way;
  readonly journey: Journey | null;
  /** Of the ways `best` and `pattern`. */
  readonly tier: string;
  readonly count: number;
  readonly isTogether: boolean;
  readonly pattern: readonly PatternPlace[];
  /** Of the way `map`. */
  readonly seats: readonly ChosenSeat[];
  /** Standing places by tier, of the way `map`. */
  readonly spots: Readonly<Record<string, number>>;
  readonly attendees: readonly string[];
}

/** A choice of nothing. */
export const NOTHING: Choice = {
  way: "best", journey: null, tier: "", count: 2, isTogether: true, pattern: [], seats: [], spots: {}, attendees: [],
};

/** What a sale allows. */
export interface Terms {
  readonly limitPerBuyer: number;
  /** How many more the buyer may have, if that is known. */
  readonly remaining: number | null;
  readonly isOneTierOnly: boolean;
  readonly attendees: "optional" | "required";
  /** How many tickets are given for these, if they are exchanged: one for one. */
  readonly exchanged?: number;
}

/** Most tickets of one order. */
export const mostTickets = (terms: Terms): number => Math.max(0, Math.min(MOST_TICKETS, terms.limitPerBuyer, roomOf(terms) ?? MOST_TICKETS));

/** How many more the buyer may have; what is exchanged makes room. */
const roomOf = ({ remaining, exchanged }: Terms): number | null => (remaining === null ? null : remaining + (exchanged ?? 0));

/** Tickets of a choice. */
export function ticketsIn(choice: Choice): number {
  switch (choice.way) {
    case "best": return choice.count;
    case "pattern": return choice.pattern.length;
    case "map": return choice.seats.length + Object.values(choice.spots).reduce((sum, count) => sum + count, 0);
  }
}

/** Places of a pattern as the API wants them: the first row first. */
export function orderedPattern(pattern: readonly PatternPlace[], columns: readonly (string | null)[]): PatternPlace[] {
  return [...pattern].sort((one, other) => one.row - other.row || columns.indexOf(one.column) - columns.indexOf(other.column));
}

/** The tickets of a choice in the order of its lines, by tier: what attendees are named for. */
export function ticketTiers(choice: Choice): string[] {
  if (choice.way !== "map") return Array.from({ length: ticketsIn(choice) }, () => choice.tier);
  return tiersOf(choice).flatMap((tier) => Array.from({ length: ticketsOfTier(choice, tier) }, () => tier));
}

function tiersOf(choice: Choice): string[] {
  const spots = Object.keys(choice.spots).filter((tier) => (choice.spots[tier] ?? 0) > 0);
  return [...new Set([...choice.seats.map((seat) => seat.tier), ...spots])];
}

function ticketsOfTier(choice: Choice, tier: string): number {
  return choice.seats.filter((seat) => seat.tier === tier).length + (choice.spots[tier] ?? 0);
}

/** Why a choice cannot be ordered. */
export type Fault = "nothing" | "too-many" | "too-many-tiers" | "one-tier" | "attendees-missing" | "attendees-twice" | "attendees-some" | "no-allowance" | "exchange-count";

/** The first reason why a choice cannot be ordered; undefined if it can. */
export function faultOf(choice: Choice, terms: Terms): Fault | undefined {
  const tickets = ticketsIn(choice);
  if (roomOf(terms) === 0) return "no-allowance";
  if (tickets === 0 || (choice.way !== "map" && choice.tier === "")) return "nothing";
  if (terms.exchanged !== undefined && tickets !== terms.exchanged) return "exchange-count";
  if (tickets > mostTickets(terms)) return "too-many";
  const tiers = choice.way === "map" ? tiersOf(choice).length : 1;
  if (terms.isOneTierOnly && tiers > 1) return "one-tier";
  if (tiers > MOST_LINES) return "too-many-tiers";
  const named = namesOf(choice);
  if (terms.attendees === "required" && named.length < tickets) return "attendees-missing";
  if (named.length > 0 && named.length < tickets) return "attendees-some";
  return new Set(named).size < named.length ? "attendees-twice" : undefined;
}

function namesOf(choice: Choice): string[] {
  return choice.attendees.slice(0, ticketsIn(choice)).map((name) => name.trim()).filter((name) => name !== "");
}

/** The lines of an order. */
export function linesOf(choice: Choice, columns: readonly (string | null)[]): Line[] {
  const journey = choice.journey === null ? {} : { from: choice.journey.from, to: choice.journey.to };
  const names = namesOf(choice);
  const isNamed = names.length === ticketsIn(choice);
  let at = 0;
  const attendees = (count: number): { attendees?: string[] } => {
    at += count;
    return isNamed && count > 0 ? { attendees: names.slice(at - count, at) } : {};
  };
  if (choice.way === "best") {
    const together = choice.isTogether ? ("required" as const) : ("preferred" as const);
    return [{ tier: choice.tier, ...journey, best: { count: choice.count, together }, ...attendees(choice.count) }];
  }
  if (choice.way === "pattern") {
    const pattern = orderedPattern(choice.pattern, columns).map(({ column, row }) => ({ column, row }));
    return [{ tier: choice.tier, ...journey, pattern, ...attendees(pattern.length) }];
  }
  return tiersOf(choice).map((tier) => {
    const seats = choice.seats.filter((seat) => seat.tier === tier).map((seat) => seat.seat);
    const spots = choice.spots[tier] ?? 0;
    return { tier, ...journey, ...(spots > 0 ? { best: { count: spots, together: "preferred" as const } } : { seats }), ...attendees(spots > 0 ? spots : seats.length) };
  });
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

/** A kept choice, of which what cannot be read is left out. */
export function readChoice(value: unknown): Choice {
  if (typeof value !== "object" || value === null) return NOTHING;
  const kept = value as Partial<Record<keyof Choice, unknown>>;
  const list = <T>(of: unknown, is: (one: unknown) => one is T): T[] => (Array.isArray(of) ? of.filter(is) : []);
  const isSeat = (one: unknown): one is ChosenSeat =>
    typeof one === "object" && one !== null && ["tier", "seat", "label"].every((key) => isText((one as Record<string, unknown>)[key]));
  const isPlace = (one: unknown): one is PatternPlace =>
    typeof one === "object" && one !== null && isText((one as PatternPlace).column) && ((one as PatternPlace).row === 0 || (one as PatternPlace).row === 1);
  const journey = kept.journey as Partial<Journey> | null | undefined;
  const isCount = (one: unknown): one is number => Number.isInteger(one) && (one as number) > 0 && (one as number) <= MOST_TICKETS;
  const spots = typeof kept.spots === "object" && kept.spots !== null ? Object.entries(kept.spots).filter(([, count]) => isCount(count)) : [];
  return {
    way: kept.way === "map" || kept.way === "pattern" ? kept.way : "best",
    journey: journey && isText(journey.from) && isText(journey.to) ? { from: journey.from, to: journey.to } : null,
    tier: isText(kept.tier) ? kept.tier : "",
    count: isCount(kept.count) ? kept.count : NOTHING.count,
    isTogether: kept.isTogether !== false,
    pattern: list(kept.pattern, isPlace),
    seats: list(kept.seats, isSeat).slice(0, MOST_TICKETS),
    spots: Object.fromEntries(spots) as Record<string, number>,
    attendees: list(kept.attendees, isText).slice(0, MOST_TICKETS),
  };
}
