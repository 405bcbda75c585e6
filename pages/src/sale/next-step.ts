/** What the one button of a sale's page does now. Pure: time is an argument. */
import type { Schemas } from "onsale-client";

import type { KeptPlace } from "../shared/place.ts";
import { admits, standing, type RoomDocument } from "../room/standing.ts";

/** A sale, as `GET /sales/{sale}` shows it. */
export type Sale = Schemas["SaleReply"];

/** What decides. */
export interface Situation {
  readonly sale: Sale;
  /** The last room document; null if the sale has none, or it is not known. */
  readonly room: RoomDocument | null;
  /** The place of whoever is here; null if there is none. */
  readonly kept: KeptPlace | null;
  readonly isSignedIn: boolean;
  /** True if somebody whose place has run out wants to join again. */
  readonly again: boolean;
  readonly nowMs: number;
  /** Seats that are left, if that is known. */
  readonly left: number | null;
}

/** The button, by the text on it. */
export type Step = "sign-in" | "sign-in-wait" | "sign-in-choose" | "join" | "join-again" | "room" | "choose" | "wait" | "wait-join";

/** The sentence above it. */
export type Saying = Exclude<Step, "wait-join"> | "join-late" | "due" | "joining-later" | "paused" | "closed" | "cancelled" | "archived" | "sold_out" | "registration-over" | "room-closed";

/** What is counted down to. */
export type Until = "opening" | "joining" | "draw";

/** What happens next. */
export interface Next {
  /** Null: there is nothing to do. */
  readonly step: Step | null;
  readonly saying: Saying;
  readonly until: { readonly what: Until; readonly atMs: number } | null;
}

/** The state that a buyer is shown: the server's, moved on by its clock. */
export function phaseOf(sale: Sale, nowMs: number): Sale["state"] {
  if (sale.state === "upcoming" || sale.state === "open") {
    return nowMs >= Date.parse(sale.closes_at) ? "closed" : nowMs >= Date.parse(sale.opens_at) ? "open" : "upcoming";
  }
  return sale.state;
}

/** What happens next. */
export function nextStep(situation: Situation): Next {
  const { sale, nowMs } = situation;
  const phase = phaseOf(sale, nowMs);
  switch (phase) {
    case "closed": case "cancelled": case "archived": return { step: null, saying: phase, until: null };
    case "paused": case "sold_out": return { step: situation.kept === null ? null : "room", saying: phase, until: null };
    case "upcoming": case "open": break;
  }
  return sale.file.room == null ? withoutRoom(situation, phase) : withRoom(situation);
}

function withoutRoom({ sale, isSignedIn, left }: Situation, phase: "upcoming" | "open"): Next {
  if (phase === "upcoming") {
    const step = isSignedIn ? "wait" : "sign-in-wait";
    return { step, saying: step, until: { what: "opening", atMs: Date.parse(sale.opens_at) } };
  }
  return { step: "choose", saying: left === 0 ? "sold_out" : "choose", until: null };
}

function withRoom(situation: Situation): Next {
  const { sale, room, kept, isSignedIn, again, nowMs } = situation;
  const until = untilOf(sale, nowMs);
  if (room !== null && (room.state === "closed" || room.state === "sold_out")) {
    return { step: kept === null ? null : "room", saying: room.state === "closed" ? "room-closed" : "sold_out", until: null };
  }
  if (kept === null || again) {
    return joining(situation, until);
  }
  const group = room?.groups.find((one) => one.group === kept.group);
  const state = room !== null && group !== undefined ? standing(room, group, kept.index, kept.place, nowMs) : null;
  if (room !== null && state?.kind === "due" && admits(room)) {
    return isSignedIn ? { step: "choose", saying: "due", until: null } : { step: "sign-in-choose", saying: "due", until: null };
  }
  return { step: "room", saying: "room", until };
}

function joining({ sale, isSignedIn, again, kept, nowMs }: Situation, until: Next["until"]): Next {
  const { joins_open_at: opensAt, registered_only: isRegisteredOnly } = sale.file.room ?? {};
  if (opensAt != null && nowMs < Date.parse(opensAt)) {
    return { step: isSignedIn ? "wait-join" : "sign-in-wait", saying: "joining-later", until: { what: "joining", atMs: Date.parse(opensAt) } };
  }
  const isDrawn = nowMs >= drawClosesAtMs(sale);
  const step = !isSignedIn ? "sign-in" : again && kept !== null ? "join-again" : "join";
  if (step === "join-again") {
    return { step, saying: "join-again", until };
  }
  return { step, saying: isDrawn ? (isRegisteredOnly === true ? "registration-over" : "join-late") : step, until };
}

/** When the first window closes. */
export const drawClosesAtMs = (sale: Sale): number =>
  Date.parse(sale.opens_at) - (sale.file.room?.draw_lead_seconds ?? 300) * 1_000;

function untilOf(sale: Sale, nowMs: number): Next["until"] {
  const closesMs = drawClosesAtMs(sale);
  const opensMs = Date.parse(sale.opens_at);
  return nowMs < closesMs ? { what: "draw", atMs: closesMs } : nowMs < opensMs ? { what: "opening", atMs: opensMs } : null;
}
