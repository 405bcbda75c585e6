/**
 * The turn of a buyer whose place in the waiting room is due. Pure: time is an argument.
 *
 * Until the buyer first uses this page, the place waits for `show_up_seconds` and then runs out. The first press, touch or
 * key begins the visit, which lasts longer: choosing seats must not cost the place.
 */
import type { OnsaleProblem } from "../shared/api.ts";
import type { KeptPlace } from "../shared/place.ts";
import { browserStore, getJson, setJson } from "../shared/storage.ts";

/** A visit that has begun, as this browser knows it. */
export interface KeptVisit {
  /** The place token: another membership has another visit. */
  readonly token: string;
  /** Its end by the server's clock, in milliseconds since 1970. */
  readonly endsAtMs: number;
}

/** How a turn stands. */
export type Turn =
  /** The page has not been used: the place runs out at a time that is known if this browser saw it become due. */
  | { readonly kind: "unused"; readonly endsAtMs: number | null }
  | { readonly kind: "visit"; readonly endsAtMs: number; readonly isEnding: boolean }
  /** The place or its visit is over. */
  | { readonly kind: "over"; readonly slug: "place-run-out" | "visit-over" };

/** Milliseconds before the end of a visit from which the page warns. */
export const WARN_MS = 120_000;
/** Milliseconds after which a failed beginning may be tried again. */
export const AGAIN_MS = 2_000;

const keyOf = (sale: string) => `onsale.visit.${sale}`;

/** The visit of a place that this browser began. */
export function keptVisit(sale: string, place: KeptPlace): KeptVisit | null {
  const kept = getJson<KeptVisit>(browserStore, keyOf(sale));
  return kept !== null && kept.token === place.token && Number.isFinite(kept.endsAtMs) ? kept : null;
}

/** Keeps a visit: the clock stays when the page is loaded again, or opened in another tab. */
export function keepVisit(sale: string, visit: KeptVisit): void {
  setJson(browserStore, keyOf(sale), visit);
}

/** How the turn of a place stands; `over` is what the engine has answered last, if it refused the place for good. */
export function turnOf(place: KeptPlace, visit: KeptVisit | null, showUpSeconds: number, over: Turn & { kind: "over" } | null, nowMs: number): Turn {
  if (over !== null) return over;
  if (visit !== null) {
    return { kind: "visit", endsAtMs: visit.endsAtMs, isEnding: visit.endsAtMs - nowMs <= WARN_MS };
  }
  return { kind: "unused", endsAtMs: place.dueAtMs === undefined ? null : place.dueAtMs + showUpSeconds * 1_000 };
}

/** What a refusal says of the turn for good; null if it may be another next time. */
export function overBy(problem: OnsaleProblem): Turn & { kind: "over" } | null {
  return problem.slug === "place-run-out" || problem.slug === "visit-over" ? { kind: "over", slug: problem.slug } : null;
}
