/** The layout of a train: its coaches one after the other, letters across, in as many lines as suit the screen. */

import { type Area, Drawing, type Layout, type Place, areasOf, blockOf, rectangle } from "./layout.ts";
import type { Plan } from "./plan.ts";
import { naturally } from "./rows.ts";

/** Room for the door and the letters at either end of a coach, and between two lines. */
const END = 2.6;
const BETWEEN = 1.2;
const LINE_GAP = 3.4;

/** The number of coaches in a line that brings the whole nearest to the shape of the screen (width / height). */
export function coachesPerLine(coaches: number, length: number, height: number, aspect: number): number {
  let best = 1;
  let bestDistance = Infinity;
  for (let perLine = 1; perLine <= coaches; perLine += 1) {
    const lines = Math.ceil(coaches / perLine);
    const shape = (perLine * length) / (lines * height);
    const distance = Math.abs(Math.log(shape / aspect));
    if (distance < bestDistance) [best, bestDistance] = [perLine, distance];
  }
  return best;
}

/** The classes of a coach, in words. */
function classesOf(plan: Plan, area: Area): string {
  const tiers = new Set(area.rows.map((row) => plan.sections[plan.rows[row]?.section ?? 0]?.tier ?? 0));
  return [...tiers].map((tier) => plan.tiers[tier]?.name ?? "").join(", ");
}

/** Draws a coach: as long as all are, its seats in the middle. */
function putCoach(drawing: Drawing, area: Area, shell: number, top: number, height: number, longest: number): void {
  const { plan } = drawing;
  const label = `${area.name} · ${classesOf(plan, area)}`;
  drawing.shapes.push({ kind: "coach", label, points: coachOutline(shell, top, shell + longest, top + height) });
  const left = shell + (longest - (area.rows.length - 1 + 2 * END)) / 2;
  // A coach lies on its side: its rows go to the right, its columns from the window below to the one above.
  const middle = top + height / 2;
  const place: Place = (x, y) => [left + END + y, middle - x];
  const sections = new Map<number, [number, number]>();
  area.rows.forEach((row, index) => {
    drawing.putRow(row, index, place);
    const planRow = plan.rows[row];
    if (planRow === undefined) return;
    const [from] = sections.get(planRow.section) ?? [index, index];
    sections.set(planRow.section, [from, index]);
    drawing.marks.push({ x: left + END + index, y: top + height + 0.55, text: planRow.label });
  });
  for (const [section, [from, to]] of sections) {
    const shape = rectangle(left + END + from - 0.75, top + 0.2, left + END + to + 0.75, top + height - 0.2);
    drawing.outline(section, shape);
  }
  putLetters(drawing, area, left + END - 1.1, middle);
}

/** A coach from above: a rectangle with cut corners. */
function coachOutline(left: number, top: number, right: number, bottom: number): number[] {
  const cut = 0.9;
  return [
    left + cut, top, right - cut, top, right, top + cut, right, bottom - cut,
    right - cut, bottom, left + cut, bottom, left, bottom - cut, left, top + cut,
  ];
}

function putLetters(drawing: Drawing, area: Area, x: number, middle: number): void {
  const { plan } = drawing;
  const row = plan.rows[area.rows[0] ?? 0];
  const columns = plan.tiers[plan.sections[row?.section ?? 0]?.tier ?? 0]?.columns ?? [];
  columns.forEach((letter, index) => {
    if (letter !== null) drawing.marks.push({ x, y: middle + (columns.length - 1) / 2 - index, text: letter });
  });
}

/** Lays a train out for a screen of the given shape. */
export function layOutTrain(plan: Plan, aspect: number): Layout {
  const drawing = new Drawing(plan);
  const coaches = areasOf(plan).sort((one, other) => naturally(one.name, other.name));
  const height = Math.max(3, ...coaches.map((coach) => coach.places)) + 1;
  const longest = Math.max(8, ...coaches.map((coach) => coach.rows.length)) - 1 + 2 * END;
  const spots = plan.tiers.flatMap((tier, index) => (tier.spots > 0 ? [index] : []));
  const line = height + LINE_GAP;
  const perLine = coachesPerLine(Math.max(1, coaches.length), longest + BETWEEN, line, aspect);
  let top = 0;
  coaches.forEach((coach, index) => {
    const column = index % perLine;
    top = Math.floor(index / perLine) * line;
    putCoach(drawing, coach, column * (longest + BETWEEN), top, height, longest);
  });
  const width = perLine * (longest + BETWEEN) - BETWEEN;
  const below = coaches.length > 0 ? top + line : 0;
  spots.forEach((tier, index) => {
    const share = width / spots.length;
    drawing.spots[tier] = blockOf(rectangle(index * share, below, (index + 1) * share - BETWEEN, below + 4));
  });
  return drawing.finish("train", 1, 1.6);
}
