/** Free seats in place of those that were taken meanwhile. */

import { type Plan, sectionOf, tierOf } from "./plan.ts";
import type { Free } from "./state.ts";

/** Lanes between the seats of one row count as no neighbourhood. */
function areNeighbours(plan: Plan, one: number, other: number): boolean {
  return plan.rowOf[one] === plan.rowOf[other] && Math.abs((plan.placeOf[one] ?? 0) - (plan.placeOf[other] ?? 0)) === 1;
}

function distance(xy: Float32Array, one: number, other: number): number {
  return Math.hypot((xy[one * 2] ?? 0) - (xy[other * 2] ?? 0), (xy[one * 2 + 1] ?? 0) - (xy[other * 2 + 1] ?? 0));
}

/**
 * For each lost seat the nearest free one of its tier, beside a kept or another offered one where that
 * is not much farther. Fewer than were lost, if no more are free.
 */
export function nearestFree(plan: Plan, xy: Float32Array, pitch: number, free: Free, lost: readonly number[], kept: readonly number[]): number[] {
  const offered: number[] = [];
  for (const seat of lost) {
    const tier = tierOf(plan, seat);
    const company = [...kept, ...offered];
    let best: number | undefined;
    let bestCost = Infinity;
    for (const section of plan.sections) {
      if (section.tier !== tier) continue;
      for (let other = section.first; other < section.first + section.seats; other += 1) {
        if (free.bySeat[other] !== 1 || company.includes(other) || lost.includes(other)) continue;
        const way = distance(xy, seat, other) / pitch;
        if (way - 4 >= bestCost) continue;
        const isBeside = company.length > 0 && company.some((mate) => areNeighbours(plan, mate, other));
        const isRow = plan.rowOf[other] === plan.rowOf[seat];
        const isSection = sectionOf(plan, other) === sectionOf(plan, seat);
        const cost = way - (isBeside ? 3 : 0) - (isRow ? 1 : 0) + (isSection ? 0 : 4);
        if (cost < bestCost) [best, bestCost] = [other, cost];
      }
    }
    if (best !== undefined) offered.push(best);
  }
  return offered;
}

/** True if a seat of the plan lies so many places beside another in its row, and is free. */
function isFreeBeside(plan: Plan, isFree: (seat: number) => boolean, seat: number, by: -1 | 1): boolean {
  return areNeighbours(plan, seat, seat + by) && isFree(seat + by);
}

/** Free seats that some chosen ones leave alone: beside one of them, and beside no other free seat. No train's: there people sit alone. */
export function singlesLeft(plan: Plan, free: Free, chosen: readonly number[]): number[] {
  if (plan.isTrain) return [];
  const isFree = (seat: number): boolean => free.bySeat[seat] === 1 && !chosen.includes(seat);
  const beside = chosen.flatMap((seat) => [seat - 1, seat + 1].filter((other) => areNeighbours(plan, seat, other) && isFree(other)));
  return [...new Set(beside)].filter((seat) => !isFreeBeside(plan, isFree, seat, -1) && !isFreeBeside(plan, isFree, seat, 1)).sort((one, other) => one - other);
}

/**
 * The chosen seat to give up for a free one that the choice leaves alone, so that it leaves none: the far end of the chosen seats beside it.
 * Undefined if any seat would leave one.
 */
export function insteadOfSingle(plan: Plan, free: Free, chosen: readonly number[], single: number): number | undefined {
  for (const by of [1, -1] as const) {
    let end = single;
    while (chosen.includes(end + by) && areNeighbours(plan, end, end + by)) end += by;
    if (end !== single && singlesLeft(plan, free, [...chosen.filter((seat) => seat !== end), single]).length === 0) return end;
  }
  return undefined;
}

/**
 * The nearest run of `count` free neighbours of a tier, by the distance of its middle from a seat; of its row one that leaves no single
 * seat, if there is one. Empty if there is no run.
 */
export function nearestTogether(plan: Plan, xy: Float32Array, free: Free, from: number, count: number): number[] {
  const tier = tierOf(plan, from);
  const runs: { seats: number[]; row: number; way: number }[] = [];
  for (const section of plan.sections) {
    if (section.tier !== tier) continue;
    let run: number[] = [];
    for (let seat = section.first; seat < section.first + section.seats; seat += 1) {
      const last = run[run.length - 1];
      if (free.bySeat[seat] !== 1) {
        run = [];
        continue;
      }
      run = last !== undefined && areNeighbours(plan, last, seat) ? [...run.slice(run.length >= count ? 1 : 0), seat] : [seat];
      if (run.length < count) continue;
      const way = distance(xy, from, run[Math.floor(count / 2)] ?? seat);
      runs.push({ seats: run, row: plan.rowOf[seat] ?? 0, way });
    }
  }
  const nearest = runs.reduce<(typeof runs)[number] | undefined>((best, run) => (best === undefined || run.way < best.way ? run : best), undefined);
  const ofRow = runs.filter((run) => run.row === nearest?.row);
  const whole = ofRow.filter(({ seats }) => singlesLeft(plan, free, seats).length === 0);
  return (whole.length > 0 ? whole : ofRow).reduce((best, run) => (run.way < best.way ? run : best), { seats: [] as number[], way: Infinity }).seats;
}
