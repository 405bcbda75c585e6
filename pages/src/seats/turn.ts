/**
 * The turn of a buyer whose place in the waiting room is due. Pure: time is an argument.
 *
 * Until the buyer first uses this page, the place waits for `show_up_seconds` and then runs out. The first press, touch or
 * key begins the visit, which lasts longer: choosing seats must not cost the place.
 */
import type { OnsaleProblem } from "../shared/api.ts";
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
  /** Not due, or nothing is known of it: nothing is said. */
  | { readonly kind: "none" }
  /** The page has not been used: the place runs out at that time at the latest, if this browser saw it become due. */
  | { readonly kind: "unused"; readonly endsAtMs: number | null }
  | { readonly kind: "visit"; readonly endsAtMs: number; readonly isEnding: boolean }
  /** The place or its visit is over. */
  | { readonly kind: "over"; readonly slug: "place-run-out" | "visit-over" };

/** What is known of a turn. */
export interface Known {
  readonly visit: KeptVisit | null;
  /** Whether the place is due, or was: then its visit may have begun on another device. */
  readonly isDue: boolean;
  /** When this browser first saw that it was due. */
  readonly dueAtMs: number | undefined;
  readonly showUpSeconds: number;
  /** What the engine refused the place with for good. */
  readonly refusedBy: string | null;
}

/** Milliseconds before the end of a visit from which the page warns. */
const WARN_MS = 120_000;
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 30_000;
/** Refusals that stay: the same request will not be answered otherwise. */
const FINAL = ["place-run-out", "visit-over", "place-invalid", "sold-out", "sale-closed", "sale-archived", "not-found", "invalid"];

const keyOf = (sale: string) => `onsale.visit.${sale}`;

/** The visit of a place that this browser began, in whichever tab. */
export function keptVisit(sale: string, token: string): KeptVisit | null {
  const kept = getJson<KeptVisit>(browserStore, keyOf(sale));
  return kept !== null && kept.token === token && Number.isFinite(kept.endsAtMs) ? kept : null;
}

/** Keeps a visit: the clock stays when the page is loaded again, or opened in another tab. */
export function keepVisit(sale: string, visit: KeptVisit): void {
  setJson(browserStore, keyOf(sale), visit);
}

/** How a turn stands. */
export function turnOf({ visit, isDue, dueAtMs, showUpSeconds, refusedBy }: Known, nowMs: number): Turn {
  if (refusedBy === "place-run-out" || refusedBy === "visit-over") return { kind: "over", slug: refusedBy };
  if (refusedBy !== null) return { kind: "none" };
  if (visit !== null) return { kind: "visit", endsAtMs: visit.endsAtMs, isEnding: visit.endsAtMs - nowMs <= WARN_MS };
  if (!isDue) return { kind: "none" };
  return { kind: "unused", endsAtMs: dueAtMs === undefined ? null : dueAtMs + showUpSeconds * 1_000 };
}

/** Whether a refusal stays. */
export const isFinal = (problem: OnsaleProblem): boolean => FINAL.includes(problem.slug);

/** Milliseconds until a request that failed so many times in a row is sent again. */
export function pauseMs(failures: number, problem: OnsaleProblem): number {
  const doubled = FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 4);
  return Math.max((problem.retryAfterSeconds ?? 0) * 1_000, Math.min(LONGEST_PAUSE_MS, doubled));
}
