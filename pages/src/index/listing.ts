/** Which sales are shown, in which order. Pure: time is an argument. */
import type { Schemas } from "onsale-client";

/** A sale of the list. */
export type Summary = Schemas["SaleSummary"];

/** What is searched for. */
export interface Search {
  /** Words of the title, in any order. */
  readonly title: string;
  /** A day as YYYY-MM-DD, in the reader's time zone; empty: any. */
  readonly date: string;
  /** True if sales that are over are shown too. */
  readonly all: boolean;
}

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

/** A text without case, width and accents, so that "Théâtre" is found by "theatre". */
export const folded = (text: string): string => text.normalize("NFKD").replace(/\p{Mn}/gu, "").toLowerCase();

/** The first moment of a day and of the next one, in the reader's time zone; null if it is no day. */
export function dayBounds(date: string): readonly [number, number] | null {
  const parts = /^(\d{4})-(\d{2})-(\d{2})$/.exec(date);
  if (parts === null) {
    return null;
  }
  const [year, month, day] = parts.slice(1).map(Number) as [number, number, number];
  return [new Date(year, month - 1, day).getTime(), new Date(year, month - 1, day + 1).getTime()];
}

/** The sales that match, by section: on sale by when they close, coming by when they open. */
export function sections(sales: readonly Summary[], search: Search, nowMs: number): Sections {
  const words = folded(search.title).split(/\s+/).filter((word) => word !== "");
  const bounds = dayBounds(search.date);
  const found = sales.filter((sale) => {
    const title = folded(sale.title);
    const isThen = bounds === null || (Date.parse(sale.opens_at) < bounds[1] && Date.parse(sale.closes_at) > bounds[0]);
    return isThen && words.every((word) => title.includes(word));
  });
  const by = (time: "opens_at" | "closes_at") => (a: Summary, b: Summary) => Date.parse(a[time]) - Date.parse(b[time]) || a.title.localeCompare(b.title);
  const of = (wanted: (state: Summary["state"]) => boolean) => found.filter((sale) => wanted(stateOf(sale, nowMs)));
  return {
    open: of((state) => state === "open").sort(by("closes_at")),
    upcoming: of((state) => state === "upcoming").sort(by("opens_at")),
    past: search.all ? of((state) => state !== "open" && state !== "upcoming").sort(by("opens_at")) : of((state) => state === "paused").sort(by("opens_at")),
  };
}
