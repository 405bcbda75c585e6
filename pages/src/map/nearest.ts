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

/** The nearest run of `count` free neighbours of a tier, by the distance of its middle from a seat; empty if there is none. */
export function nearestTogether(plan: Plan, xy: Float32Array, free: Free, from: number, count: number): number[] {
  const tier = tierOf(plan, from);
  let best: number[] = [];
  let bestWay = Infinity;
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
      if (way < bestWay) [best, bestWay] = [run, way];
    }
  }
  return best;
}
