/** The layout of a theatre or club: curved rows below a stage, levels behind each other, boxes at the sides. */

import { type Area, Drawing, type Layout, type Place, areasOf, blockOf, boundsOf, placed, rectangle } from "./layout.ts";
import type { Plan } from "./plan.ts";

const GAP = 3;
/** Most seats of a box, and areas that lie beside each other. */
const BOX_SEATS = 12;
const BESIDE = 4;

const LEFT = /(^|[\s-])(left|links|gauche|west)$|左/i;
const RIGHT = /(^|[\s-])(right|rechts|droite|east|side)$|右/i;
const CENTRE = /(^|[\s-])(cent(re|er)|middle|mitte)$|中/i;

/** The level or kind that an area is of: its name without the side, letter or number at its end. */
export function levelOf(name: string): string {
  const bare = name.replace(LEFT, "").replace(RIGHT, "").replace(CENTRE, "").trim();
  const level = bare.replace(/[\s-][A-Za-z0-9]{1,3}$/, "").trim();
  return level === "" ? name : level;
}

function sideOf(name: string): number {
  return LEFT.test(name) ? -1 : RIGHT.test(name) ? 1 : 0;
}

/** How far the rows are bent: units by which a seat at x lies nearer to the stage. */
function bend(halfWidth: number): (x: number) => number {
  const depth = Math.min(6, halfWidth * 0.22);
  return (x) => depth * (x / Math.max(1, halfWidth)) ** 2;
}

interface Line {
  areas: Area[];
  width: number;
  rows: number;
}

/** The lines of areas, from the stage to the back, and the boxes. */
function linesOf(areas: Area[]): { lines: Line[]; boxes: Area[] } {
  const levels = new Map<string, Area[]>();
  for (const area of areas) {
    const level = levelOf(area.name);
    levels.set(level, [...(levels.get(level) ?? []), area]);
  }
  const lines: Line[] = [];
  const boxes: Area[] = [];
  for (const level of levels.values()) {
    if (level.length > 1 && areas.length > level.length && level.every((area) => area.seats <= BOX_SEATS)) {
      boxes.push(...level);
      continue;
    }
    const sorted = [...level].sort((one, other) => sideOf(one.name) - sideOf(other.name));
    for (let at = 0; at < sorted.length; at += BESIDE) {
      const beside = sorted.slice(at, at + BESIDE);
      const width = beside.reduce((sum, area) => sum + area.places + GAP, -GAP);
      lines.push({ areas: beside, width, rows: Math.max(...beside.map((area) => area.rows.length)) });
    }
  }
  return { lines, boxes };
}

/** Where a line begins at its left: its largest area is in the middle. */
function leftOf(line: Line): number {
  const largest = line.areas.reduce((best, area) => (area.seats > best.seats ? area : best));
  if (line.areas.filter((area) => area.seats === largest.seats).length > 1) return -line.width / 2;
  const before = line.areas.slice(0, line.areas.indexOf(largest)).reduce((sum, area) => sum + area.places + GAP, 0);
  // Halves beside each other have the aisle in the middle.
  const isHalf = line.areas.some((area) => area !== largest && area.seats * 2 > largest.seats);
  return isHalf ? -line.width / 2 : -before - largest.places / 2;
}

function putLine(drawing: Drawing, line: Line, top: number, depth: (x: number) => number): void {
  let left = leftOf(line);
  for (const area of line.areas) {
    const middle = left + (area.places - 1) / 2 + 0.5;
    const place: Place = (x, y) => [middle + x, top + y - depth(middle + x)];
    drawing.putRows(area.rows, place);
    left += area.places + GAP;
  }
}

function putBoxes(drawing: Drawing, boxes: Area[], halfWidth: number): void {
  const tops = [0, 0];
  boxes.forEach((box, index) => {
    const side = index % 2;
    const x = (halfWidth + GAP + box.places / 2) * (side === 0 ? -1 : 1);
    const top = tops[side] ?? 0;
    drawing.putRows(box.rows, (dx, dy) => [x + dx, top + dy]);
    tops[side] = top + box.rows.length + 2;
  });
}

/** Puts general admission before the rows; returns where the rows begin. */
function putSpots(drawing: Drawing, halfWidth: number, depth: (x: number) => number): number {
  let top = 0;
  drawing.plan.tiers.forEach((tier, index) => {
    if (tier.spots === 0) return;
    const height = Math.max(4, Math.min(halfWidth, Math.sqrt(tier.spots) * 0.6));
    const corners: number[] = [];
    for (let at = 0; at <= 8; at += 1) corners.push(halfWidth * (at / 4 - 1), top);
    for (let at = 8; at >= 0; at -= 1) corners.push(halfWidth * (at / 4 - 1), top + height);
    const outline = placed(corners, (x, y) => [x, y - depth(x)]);
    drawing.spots[index] = { ...blockOf(outline), x: 0, y: top + height / 2 };
    top += height + 1;
  });
  return top === 0 ? 0 : top + 1;
}

/** Lays a hall out; `stage` is what the stage is called. */
export function layOutHall(plan: Plan, stage: string): Layout {
  const drawing = new Drawing(plan);
  const { lines, boxes } = linesOf(areasOf(plan));
  const halfWidth = Math.max(10, ...lines.map((line) => Math.max(-leftOf(line), line.width + leftOf(line))));
  const depth = bend(halfWidth);
  let top = putSpots(drawing, halfWidth, depth);
  for (const line of lines) {
    putLine(drawing, line, top, depth);
    top += line.rows + GAP;
  }
  putBoxes(drawing, boxes, halfWidth);
  const ends = depth(halfWidth);
  const stageHalf = halfWidth * 0.62;
  const front = -1.8 - depth(stageHalf) * 0.4;
  const points = rectangle(-stageHalf, front - Math.max(3, ends * 0.9), stageHalf, front);
  drawing.shapes.push({ kind: "stage", label: stage, points: bulge(points) });
  return drawing.finish("hall");
}

/** A stage with a curved front. */
function bulge(box: number[]): number[] {
  const [left, top, right, bottom] = boundsOf([box], 0);
  const points = [left, top, right, top];
  for (let at = 8; at >= 0; at -= 1) {
    const share = at / 4 - 1;
    points.push(((right - left) / 2) * share, bottom + 0.9 * (1 - share * share));
  }
  return points;
}
