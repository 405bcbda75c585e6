/** The state of each seat, read from the bitmaps of availability. */

import { type Plan, sectionOf } from "./plan.ts";

/** States of a seat, as the renderer draws them: one byte a seat. */
export const FREE = 0;
export const TAKEN = 1;
/** Of the plan, and never sold. */
export const WITHHELD = 2;
export const CHOSEN = 3;
/** Chosen here, and taken by somebody else meanwhile. */
export const LOST = 4;
/** Offered in place of one that was lost. */
export const OFFERED = 5;
/** Its tier does not sell the journey, or nothing is known yet. */
export const UNKNOWN = 6;

/** The availability of a tier, as the API answers it. */
export interface TierAvailability {
  tier: string;
  price_minor: number;
  available: number;
  row_bytes: number;
  free: string;
}

/** The availability of a sale, as the API answers it. */
export interface Availability {
  as_of: string;
  max_age_seconds: number;
  from?: string | null;
  to?: string | null;
  tiers: TierAvailability[];
}

/** What is free, by seat, section and tier. */
export interface Free {
  /** 1 where a seat is free, 0 where it is not. */
  bySeat: Uint8Array;
  /** Free seats of each section. */
  bySection: Uint32Array;
  /** Of each tier what is left, or -1 if it does not sell the journey. */
  byTier: Int32Array;
  /** Of each tier its price in minor units, or -1. */
  priceOf: Float64Array;
}

/** Bytes of a text in base64. */
export function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** True if a bit is set; the most significant bit of a byte is the first. */
export function isSet(bytes: Uint8Array, bit: number): boolean {
  return (((bytes[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1) === 1;
}

/** Reads what is free. A tier whose rows have another width is not the plan's, and counts as unknown. */
export function readAvailability(plan: Plan, answer: Availability): Free {
  const free: Free = {
    bySeat: new Uint8Array(plan.seats),
    bySection: new Uint32Array(plan.sections.length),
    byTier: new Int32Array(plan.tiers.length).fill(-1),
    priceOf: new Float64Array(plan.tiers.length).fill(-1),
  };
  const bits: (Uint8Array | undefined)[] = plan.tiers.map((tier, index) => {
    const read = answer.tiers.find((one) => one.tier === tier.id);
    if (read === undefined || read.row_bytes !== tier.rowBytes) return undefined;
    free.byTier[index] = read.available;
    free.priceOf[index] = read.price_minor;
    return fromBase64(read.free);
  });
  plan.sections.forEach((section, index) => {
    const bytes = bits[section.tier];
    if (bytes === undefined) return;
    let count = 0;
    for (let seat = section.first; seat < section.first + section.seats; seat += 1) {
      if (!isSet(bytes, plan.bitOf[seat] ?? 0)) continue;
      free.bySeat[seat] = 1;
      count += 1;
    }
    free.bySection[index] = count;
  });
  return free;
}

/** What a buyer has to do with seats: chosen, lost, and offered in their place. */
export interface Picks {
  chosen: ReadonlySet<number>;
  lost: ReadonlySet<number>;
  offered: ReadonlySet<number>;
}

/** Writes the state byte of each seat; true if any changed. `free` is undefined while nothing is known. */
export function writeStates(plan: Plan, states: Uint8Array, free: Free | undefined, picks: Picks): boolean {
  let hasChanged = false;
  for (const section of plan.sections) {
    const isSold = free !== undefined && (free.byTier[section.tier] ?? -1) >= 0;
    for (let seat = section.first; seat < section.first + section.seats; seat += 1) {
      const plain = isSold ? (free.bySeat[seat] === 1 ? FREE : TAKEN) : UNKNOWN;
      const state = plan.withheld[seat] === 1 ? WITHHELD : plain;
      if (states[seat] !== state) {
        states[seat] = state;
        hasChanged = true;
      }
    }
  }
  // Picks are few; writing them over the plain state counts as a change, which costs one upload at most.
  const over = (seats: ReadonlySet<number>, state: number): void => {
    for (const seat of seats) {
      states[seat] = state;
      hasChanged = true;
    }
  };
  over(picks.offered, OFFERED);
  over(picks.chosen, CHOSEN);
  over(picks.lost, LOST);
  return hasChanged;
}

/** Those of the seats that are not free any more. Without knowledge of a seat's tier it counts as free. */
export function taken(plan: Plan, free: Free, seats: Iterable<number>): number[] {
  const isTaken = (seat: number): boolean => {
    const tier = plan.sections[sectionOf(plan, seat)]?.tier ?? 0;
    return (free.byTier[tier] ?? -1) >= 0 && free.bySeat[seat] !== 1;
  };
  return [...seats].filter(isTaken);
}
