/** What the board has shown in the last minutes: for the lines under its figures, and for rates. */
import type { Board, BoardTier } from "./api.ts";

/** A figure of the board. */
export type Figure = "waiting" | "served" | "held" | "sold" | "available" | "revenue";

/** The figures of a moment; null is unknown. */
export interface Sample {
  readonly atMs: number;
  readonly figures: Readonly<Record<Figure, number | null>>;
}

/** Milliseconds that are kept. */
export const KEPT_MS = 5 * 60_000;

const sum = (values: readonly (number | null | undefined)[]): number | null =>
  values.length === 0 || values.some((value) => value === null || value === undefined) ? null : values.reduce<number>((all, value) => all + (value ?? 0), 0);

/** Seats of a tier that are neither free nor sold; null on a train, where a seat is sold more than once. */
export function heldOf({ seats, sold, available }: BoardTier, isTrain: boolean): number | null {
  return isTrain || sold === undefined || available === undefined || sold + available > seats ? null : seats - sold - available;
}

/** The figures of a board. */
export function sampleOf(board: Board, isTrain: boolean): Sample {
  const { room, tiers } = board;
  const groups = room === null ? [] : room.groups;
  return {
    atMs: Date.parse(board.as_of),
    figures: {
      waiting: sum(groups.map(({ joined, serving }) => Math.max(0, joined - serving))),
      served: sum(groups.map(({ joined, serving }) => Math.min(joined, serving))),
      sold: sum(tiers.map((tier) => tier.sold)), available: sum(tiers.map((tier) => tier.available)),
      held: sum(tiers.map((tier) => heldOf(tier, isTrain))), revenue: sum(tiers.map((tier) => tier.revenue_minor)),
    },
  };
}

/** Adds a sample; what is too old goes, and so does what a board from a cache repeats. */
export function kept(samples: readonly Sample[], next: Sample): Sample[] {
  const last = samples.at(-1);
  const before = last !== undefined && last.atMs >= next.atMs ? samples.filter(({ atMs }) => atMs < next.atMs) : samples;
  return [...before.filter(({ atMs }) => atMs > next.atMs - KEPT_MS), next];
}

/** How much a figure has changed a minute, over the last minute that is known; null before there are ten seconds. */
export function aMinute(samples: readonly Sample[], figure: Figure): number | null {
  const last = samples.at(-1);
  const first = samples.find(({ atMs, figures }) => last !== undefined && atMs >= last.atMs - 60_000 && figures[figure] !== null);
  const [from, to] = [first?.figures[figure], last?.figures[figure]];
  if (first === undefined || last === undefined || from === null || from === undefined || to === null || to === undefined || last.atMs - first.atMs < 10_000) {
    return null;
  }
  return Math.round(((to - from) * 60_000) / (last.atMs - first.atMs));
}

/** The points of a line through a figure, as an SVG path in a box of 100 by 24; empty with fewer than two. */
export function lineOf(samples: readonly Sample[], figure: Figure): string {
  const points = samples.flatMap(({ atMs, figures }) => (figures[figure] === null ? [] : [[atMs, figures[figure]] as const]));
  const end = points.at(-1)?.[0] ?? 0;
  if (points.length < 2) {
    return "";
  }
  const values = points.map(([, value]) => value);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const start = Math.min(points[0]?.[0] ?? 0, end - 1);
  return points.map(([atMs, value], at) => {
    const x = ((atMs - start) / (end - start)) * 100;
    const y = most === least ? 12 : 22 - ((value - least) / (most - least)) * 20;
    return `${at === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
  }).join("");
}
