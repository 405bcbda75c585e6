/** What the room document means for somebody with a place. Pure: time is an argument. */
import type { Schemas } from "onsale-client";

/** The room document. */
export type RoomDocument = Schemas["Document"];
/** A group of it. */
export type RoomGroup = Schemas["GroupDocument"];

/** How it stands. */
export type Standing =
  /** The first window is open, or being drawn; or a later one is. */
  | { readonly kind: "joined" | "drawing" | "later" }
  /** The place is known, and the sale has not opened. */
  | { readonly kind: "drawn"; readonly place: number }
  /** Places before it are to be served. */
  | { readonly kind: "waiting"; readonly place: number; readonly ahead: number; readonly wait: Range | null; readonly odds: Odds }
  /** It is its turn. */
  | { readonly kind: "due"; readonly place: number }
  /** It was, and has passed: whoever has come may go on, whoever has not joins again. */
  | { readonly kind: "passed"; readonly place: number };

/** The shortest and the longest that is expected, in milliseconds. */
export interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Whether the tickets are expected to last to a place. */
export type Odds = "unknown" | "likely" | "possible" | "unlikely";

/** How a place stands in a group. `index` is what joining answered, `place` what the draw made of it. */
export function standing(document: RoomDocument, group: RoomGroup, index: number, place: number | null, nowMs: number): Standing {
  if (place === null) {
    const isFirst = group.count === undefined || index < group.count;
    if (group.seed === undefined && isFirst) {
      const isClosed = group.count !== undefined || nowMs >= Date.parse(document.draw_closes_at);
      return { kind: isClosed ? "drawing" : "joined" };
    }
    return { kind: isFirst ? "drawing" : "later" };
  }
  if (place < group.passed) {
    return { kind: "passed", place };
  }
  if (place < group.serving) {
    return { kind: "due", place };
  }
  if (nowMs < Date.parse(document.opens_at)) {
    return { kind: "drawn", place };
  }
  return { kind: "waiting", place, ahead: place - group.serving, wait: waitOf(group, place), odds: oddsOf(group, place) };
}

/**
 * The wait of a place: the places before it over the advance. None from the least place on to which the stock is expected to
 * last: such a place waits for what those who are due leave, and nobody knows how long they take.
 */
function waitOf(group: RoomGroup, place: number): Range | null {
  const [slowest, fastest] = (group.advance ?? []) as readonly (number | undefined)[];
  const lasts = group.lasts_to?.[0] as number | undefined;
  if (slowest === undefined || fastest === undefined || slowest <= 0 || (lasts !== undefined && place >= lasts)) {
    return null;
  }
  const minutes = (advance: number) => ((place - group.serving + 1) / advance) * 60_000;
  return { fromMs: minutes(fastest), toMs: minutes(slowest) };
}

/** What `lasts_to` says of a place. */
export function oddsOf(group: RoomGroup, place: number): Odds {
  const [least, most] = (group.lasts_to ?? []) as readonly (number | undefined)[];
  if (least === undefined || most === undefined) {
    return "unknown";
  }
  return place < least ? "likely" : place < most ? "possible" : "unlikely";
}

/** True if whoever is due may go and choose: the gate admits nobody while the room is paused, closed or sold out. */
export const admits = (document: RoomDocument): boolean =>
  document.state !== "paused" && document.state !== "closed" && document.state !== "sold_out";
