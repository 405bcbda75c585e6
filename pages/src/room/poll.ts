/** When to ask for the room document again (docs/waiting-room.md, "For those who write clients"). */
import type { Odds, RoomDocument, Standing } from "./standing.ts";

/** Milliseconds between two requests of a page that nobody looks at. */
const HIDDEN_MS = 60_000;
/** How soon a request that failed, or that of a page that somebody looks at again, is made at the soonest. */
export const SOON_MS = 2_000;
/** What counts as the wait where nobody knows it. */
const UNKNOWN_WAIT_MS = 60_000;

/** What decides about the next request. Random numbers are 0 to 1. */
export interface Asked {
  readonly document: RoomDocument | null;
  readonly standing: Standing | null;
  readonly nowMs: number;
  readonly isHidden: boolean;
  /** Requests that failed since the last answer. */
  readonly failures: number;
  /** What a refusal said, in seconds. */
  readonly retryAfterSeconds: number | null;
  readonly random: number;
}

/** The wait, as far as it is known: until the next thing happens to this place. */
function waitMs({ document, standing, nowMs }: Asked): number {
  if (document === null) {
    return 0;
  }
  const until = (time: string) => Math.max(0, Date.parse(time) - nowMs);
  switch (standing?.kind) {
    case "joined": return until(document.draw_closes_at);
    case "drawn": return until(document.opens_at) + servedAfterMs(document, standing.place, 0);
    case "drawing": return 0;
    case "due": return 0;
    case "waiting": return standing.wait?.fromMs ?? guessMs(document, standing.ahead, standing.odds);
    case "passed": case "later": case undefined: return UNKNOWN_WAIT_MS;
  }
}

/**
 * The wait of a place for which none is shown. In the first minute the advance says little, but the rate does. A place to
 * which the stock may last can be due as soon as that. A room that is paused, and places beyond the stock, have time.
 */
function guessMs(document: RoomDocument, ahead: number, odds: Odds): number {
  const { state } = document;
  if (state === "paused" || state === "sold_out" || state === "closed" || odds === "unlikely") {
    return UNKNOWN_WAIT_MS * 10;
  }
  return servedAfterMs(document, ahead, UNKNOWN_WAIT_MS);
}

/** How long so many places take at the room's rate: before the opening, what a place waits beyond it. Without one, `unknownMs`. */
const servedAfterMs = ({ rate }: RoomDocument, places: number, unknownMs: number): number => (rate > 0 ? (places / rate) * 1_000 : unknownMs);

/** Milliseconds until the next request: a tenth of the wait within the bounds of `poll`, jittered. */
export function pauseMs(asked: Asked): number {
  const { min_seconds: least, max_seconds: most, jitter_percent: jitter } = asked.document?.poll ?? { min_seconds: 2, max_seconds: 60, jitter_percent: 30 };
  let ms = Math.min(most * 1_000, Math.max(least * 1_000, waitMs(asked) / 10));
  if (asked.failures > 0) {
    ms = Math.max(ms, Math.min(most * 1_000, SOON_MS * 2 ** Math.min(asked.failures, 10)), (asked.retryAfterSeconds ?? 0) * 1_000);
  }
  if (asked.isHidden && asked.standing?.kind !== "due") {
    ms = Math.max(ms, HIDDEN_MS);
  }
  return ms * (1 + ((asked.random * 2 - 1) * jitter) / 100);
}

/** True if this request is to be left out. Whoever is due leaves none out. */
export const isLeftOut = (document: RoomDocument | null, standing: Standing | null, random: number): boolean =>
  standing?.kind !== "due" && random * 100 < (document?.poll.drop ?? 0);
