/** Which sales are shown, in which order. Pure: time is an argument. */
import type { Schemas } from "onsale-client";

import { localDay } from "../shared/event.ts";
import { folded, foldedWords } from "./fold.ts";

/** A sale of the list. */
export type Summary = Schemas["SaleSummary"];

/** What is searched for. */
export interface Search {
  /** Words of title, performers, venue and city, in any order. */
  readonly text: string;
  /** The first and the last day of the event as YYYY-MM-DD, by the clocks of its venue; empty: any. */
  readonly from: string;
  readonly until: string;
  /** A category; empty: any. */
  readonly category: string;
  /** True if sales that are over are shown too. */
  readonly all: boolean;
}

/** What finds everything that is not over. */
export const EVERYTHING: Search = { text: "", from: "", until: "", category: "", all: false };

/** The sections of the page. */
export interface Sections {
  readonly open: readonly Summary[];
  readonly upcoming: readonly Summary[];
  readonly past: readonly Summary[];
}

/** The state of a sale, moved on by the server's clock. */
export function stateOf(sale: Summary, nowMs: number): Summary["state"] {
  if (sale.state === "upcoming" || sale.state === "open") {
    return nowMs >= Date.parse(sale.closes_at) ? "closed" : nowMs >= Date.parse(sale.opens_at) ? "open" : "upcoming";
  }
  return sale.state;
}

/** The words that a sale is found by. */
const wordsOf = ({ title, event, route }: Summary): string =>
  folded([title, ...(event?.performers ?? []), event?.venue?.name ?? "", event?.venue?.city ?? "", route?.from ?? "", route?.to ?? ""].join(" "));

/**
 * The first and the last day of an event, by the clocks of its venue; of a train that says no event, the days on which it
 * leaves its first stop and arrives at its last, by the clocks there; null if nobody has said.
 */
export function daysOf({ event, route }: Pick<Summary, "event" | "route">): readonly [string, string] | null {
  const first = localDay(event?.starts_at, event?.time_zone);
  const [leaves, comes] = [route?.departs_at, route?.arrives_at].map((time) => time?.slice(0, 10));
  if (first === null && leaves !== undefined) {
    return [leaves, comes !== undefined && comes > leaves ? comes : leaves];
  }
  return first === null ? null : [first, localDay(event?.ends_at, event?.time_zone) ?? first];
}

/** True if an event has a day of those that are searched for. A day that is not typed in full yet is none. */
function isThen(sale: Summary, { from, until }: Search): boolean {
  const [first, last] = [from, until].map((day) => (/^\d{4}-\d{2}-\d{2}$/.test(day) ? day : ""));
  const days = daysOf(sale);
  return (first === "" && last === "") || (days !== null && (first === "" || days[1] >= (first ?? "")) && (last === "" || days[0] <= (last ?? "")));
}

/** The sales that match, by section: by the day of the event, and those without one after them, by when they close or open. */
export function sections(sales: readonly Summary[], search: Search, nowMs: number): Sections {
  const words = foldedWords(search.text);
  const found = sales.filter((sale) => {
    const all = wordsOf(sale);
    return isThen(sale, search) && (search.category === "" || sale.event?.category === search.category) && words.every((word) => all.includes(word));
  });
  // The hour of a stop has no offset here: to sort by, that of UTC will do.
  const startsMs = ({ event, route }: Summary) => Date.parse(event?.starts_at ?? "") || Date.parse(`${route?.departs_at ?? ""}Z`) || Number.MAX_SAFE_INTEGER;
  const by = (time: "opens_at" | "closes_at") => (a: Summary, b: Summary) =>
    startsMs(a) - startsMs(b) || Date.parse(a[time]) - Date.parse(b[time]) || a.title.localeCompare(b.title);
  const of = (wanted: (state: Summary["state"]) => boolean) => found.filter((sale) => wanted(stateOf(sale, nowMs)));
  return {
    open: of((state) => state === "open").sort(by("closes_at")),
    upcoming: of((state) => state === "upcoming").sort(by("opens_at")),
    past: search.all ? of((state) => state !== "open" && state !== "upcoming").sort(by("opens_at")) : of((state) => state === "paused" || state === "sold_out").sort(by("opens_at")),
  };
}
