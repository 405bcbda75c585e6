/** Where the seats of a plan lie on the map, in units of which the layout's `pitch` is the way from seat to seat. */

import type { Plan } from "./plan.ts";
import { rowOrder } from "./rows.ts";

/** Corners of a polygon: x, y, x, y … */
export type Polygon = number[];

/** Something to see that is not sold. */
export interface Shape {
  kind: "stage" | "pitch" | "area" | "coach";
  label?: string;
  points: Polygon;
}

/** A text on the map. */
export interface Mark {
  x: number;
  y: number;
  text: string;
}

/** A section, or the spots of a general admission tier, with its outline and the middle of its label. */
export interface Block {
  outline: Polygon;
  x: number;
  y: number;
}

/** Positions and shapes of everything on a map. */
export interface Layout {
  kind: "hall" | "stadium" | "train" | "document";
  /** x and y of each seat. */
  xy: Float32Array;
  pitch: number;
  /** Left, top, right and bottom of all there is. */
  bounds: [number, number, number, number];
  shapes: Shape[];
  /** One for each section of the plan. */
  sections: Block[];
  /** One for each tier; undefined for a tier with seats. */
  spots: (Block | undefined)[];
  /** Names of rows, and letters of columns, shown when they can be read. */
  marks: Mark[];
}

/** Moves a point of a block's own plane to the map. */
export type Place = (x: number, y: number) => [number, number];

/** Room around a seat within its section's outline. */
const MARGIN = 0.85;

/** A layout under construction. */
export class Drawing {
  readonly xy: Float32Array;
  readonly shapes: Shape[] = [];
  readonly sections: Block[];
  readonly spots: (Block | undefined)[];
  readonly marks: Mark[] = [];

  constructor(readonly plan: Plan) {
    this.xy = new Float32Array(plan.seats * 2);
    this.sections = plan.sections.map(() => ({ outline: [], x: 0, y: 0 }));
    this.spots = plan.tiers.map(() => undefined);
  }

  /** Puts the seats of a row: place p at x = p − (places − 1) / 2 of the block's plane. */
  putRow(row: number, y: number, place: Place): void {
    const planRow = this.plan.rows[row];
    if (planRow === undefined) return;
    const middle = (planRow.places - 1) / 2;
    for (let seat = planRow.first; seat < planRow.first + planRow.seats; seat += 1) {
      this.putSeat(seat, place((this.plan.placeOf[seat] ?? 0) - middle, y));
    }
  }

  /** Puts one seat. */
  putSeat(seat: number, at: readonly [number, number]): void {
    this.xy[seat * 2] = at[0];
    this.xy[seat * 2 + 1] = at[1];
  }

  /** Puts rows below each other, each with its name at its left, and outlines the sections that they are of. */
  putRows(rows: readonly number[], place: Place): void {
    rows.forEach((row, index) => {
      this.putRow(row, index, place);
      const planRow = this.plan.rows[row];
      if (planRow === undefined) return;
      const [x, y] = place(-(planRow.places - 1) / 2 - 1.5, index);
      this.marks.push({ x, y, text: planRow.label });
    });
    for (const section of new Set(rows.map((row) => this.plan.rows[row]?.section ?? 0))) {
      const own = rows.flatMap((row, y) => {
        const planRow = this.plan.rows[row];
        return planRow?.section === section ? [{ y, half: (planRow.places - 1) / 2 }] : [];
      });
      this.outline(section, outlineOf(own, place));
    }
  }

  /** Sets the outline of a section, and its label into the middle. */
  outline(section: number, points: Polygon): void {
    const block = this.sections[section];
    if (block !== undefined) Object.assign(block, blockOf(points));
  }

  /** The finished layout. */
  finish(kind: Layout["kind"], pitch = 1, margin = 0): Layout {
    const all = [
      ...this.shapes.map((shape) => shape.points),
      ...this.sections.map((block) => block.outline),
      ...this.spots.map((block) => block?.outline ?? []),
      [...this.xy],
    ];
    return {
      kind,
      xy: this.xy,
      pitch,
      bounds: boundsOf(all, Math.max(pitch, margin)),
      shapes: this.shapes,
      sections: this.sections,
      spots: this.spots,
      marks: this.marks,
    };
  }
}

/** A block with its label in the middle of its outline's bounds. */
export function blockOf(outline: Polygon): Block {
  const [left, top, right, bottom] = boundsOf([outline], 0);
  return { outline, x: (left + right) / 2, y: (top + bottom) / 2 };
}

/** A rectangle as a polygon. */
export function rectangle(left: number, top: number, right: number, bottom: number): Polygon {
  return [left, top, right, top, right, bottom, left, bottom];
}

/** A polygon moved to the map corner by corner. */
export function placed(points: Polygon, place: Place): Polygon {
  const moved: Polygon = [];
  for (let at = 0; at < points.length; at += 2) moved.push(...place(points[at] ?? 0, points[at + 1] ?? 0));
  return moved;
}

/** The outline of rows that lie below each other, following their ends. */
function outlineOf(rows: readonly { y: number; half: number }[], place: Place): Polygon {
  const first = rows[0];
  const last = rows[rows.length - 1];
  if (first === undefined || last === undefined) return [];
  const points: Polygon = [];
  const edge = (half: number, y: number, side: number): void => {
    // Rows may be curved: their ends are joined by some points.
    for (let at = 0; at <= 8; at += 1) points.push((half + MARGIN) * side * (at / 4 - 1), y);
  };
  // Between two rows the outline goes around the longer one.
  const side = (all: readonly { y: number; half: number }[], sign: number): void => {
    all.forEach(({ y, half }, at) => {
      const next = all[at + 1];
      points.push((half + MARGIN) * sign, y);
      if (next === undefined || Math.abs(next.half - half) < 0.1) return;
      const turn = half > next.half ? y + Math.sign(next.y - y) * MARGIN : next.y - Math.sign(next.y - y) * MARGIN;
      for (let share = 0; share <= 4; share += 1) points.push((half + ((next.half - half) * share) / 4 + MARGIN) * sign, turn);
    });
  };
  edge(first.half, first.y - MARGIN, 1);
  side(rows, 1);
  edge(last.half, last.y + MARGIN, -1);
  side([...rows].reverse(), -1);
  return placed(points, place);
}

/** Left, top, right and bottom of polygons, with a margin. */
export function boundsOf(polygons: readonly Polygon[], margin: number): [number, number, number, number] {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const points of polygons) {
    for (let at = 0; at < points.length; at += 2) {
      const x = points[at] ?? 0;
      const y = points[at + 1] ?? 0;
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
    }
  }
  if (left > right) return [0, 0, 1, 1];
  return [left - margin, top - margin, right + margin, bottom + margin];
}

/** True if a point is within a polygon (even-odd rule). */
export function isWithin(points: Polygon, x: number, y: number): boolean {
  let inside = false;
  for (let at = 0, before = points.length - 2; at < points.length; before = at, at += 2) {
    const [ax, ay] = [points[at] ?? 0, points[at + 1] ?? 0];
    const [bx, by] = [points[before] ?? 0, points[before + 1] ?? 0];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

/** Rows of one name, from whichever tiers: what people call a block or a coach. */
export interface Area {
  name: string;
  rows: number[];
  /** Most places of a row. */
  places: number;
  seats: number;
}

/** The areas of a plan in the order of the file. */
export function areasOf(plan: Plan): Area[] {
  const byName = new Map<string, Area>();
  plan.rows.forEach((row, index) => {
    const name = plan.sections[row.section]?.name ?? "";
    const area = byName.get(name) ?? { name, rows: [], places: 0, seats: 0 };
    area.rows.push(index);
    area.places = Math.max(area.places, row.places);
    area.seats += row.seats;
    byName.set(name, area);
  });
  const areas = [...byName.values()];
  for (const area of areas) area.rows = frontToBack(plan, area.rows);
  return areas;
}

/** Rows by their labels where these have an order; files order them by desirability instead. */
const frontToBack = (plan: Plan, rows: number[]): number[] =>
  rowOrder(rows.map((row) => plan.rows[row]?.label ?? "")).map((at) => rows[at] ?? 0);
