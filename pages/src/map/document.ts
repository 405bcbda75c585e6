/** The map document of a sale: positions that its organiser gave. What does not fit the plan is no map. */

import { Drawing, type Layout, type Polygon, type Shape, blockOf, boundsOf } from "./layout.ts";
import type { Plan } from "./plan.ts";

/** The largest coordinate that is believed, and the most corners and outlines. */
const FARTHEST = 1e6;
const MOST_CORNERS = 2_000;
const MOST_OUTLINES = 500;

type Point = [number, number];

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function pointOf(value: unknown): Point | undefined {
  if (!Array.isArray(value) || value.length !== 2) return undefined;
  const [x, y] = value as unknown[];
  const isNumber = (one: unknown): one is number => typeof one === "number" && Number.isFinite(one) && Math.abs(one) <= FARTHEST;
  return isNumber(x) && isNumber(y) ? [x, y] : undefined;
}

function polygonOf(value: unknown): Polygon | undefined {
  if (!Array.isArray(value) || value.length < 3 || value.length > MOST_CORNERS) return undefined;
  const points = value.map(pointOf);
  return points.every((point): point is Point => point !== undefined) ? points.flat() : undefined;
}

function shapesOf(value: unknown): Shape[] | undefined {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > MOST_OUTLINES) return undefined;
  const shapes: Shape[] = [];
  for (const one of value as unknown[]) {
    if (!isObject(one)) return undefined;
    const points = polygonOf(one.points);
    const kind = one.kind;
    if (points === undefined || (kind !== "stage" && kind !== "pitch" && kind !== "area")) return undefined;
    shapes.push({ kind, points, ...(typeof one.label === "string" && one.label !== "" ? { label: one.label } : {}) });
  }
  return shapes;
}

/** The places of a row by the document: one point a place, `null` where it has none. */
function placesOf(row: Record<string, unknown>, places: number): (Point | null)[] | undefined {
  if (Array.isArray(row.seats)) {
    if (row.seats.length !== places) return undefined;
    const points = (row.seats as unknown[]).map((seat) => (seat === null ? null : pointOf(seat)));
    return points.every((point): point is Point | null => point !== undefined) ? points : undefined;
  }
  const [from, to] = [pointOf(row.from), pointOf(row.to)];
  if (from === undefined || to === undefined) return undefined;
  const at = (place: number): Point => {
    const share = places > 1 ? place / (places - 1) : 0;
    return [from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share];
  };
  return Array.from({ length: places }, (_, place) => at(place));
}

/** Puts the rows of a section; false if any of its seats has no place. */
function putSection(drawing: Drawing, section: number, rows: unknown): boolean {
  const { plan } = drawing;
  const planSection = plan.sections[section];
  if (planSection === undefined || !Array.isArray(rows)) return false;
  const given = new Map<string, Record<string, unknown>[]>();
  for (const row of rows as unknown[]) {
    if (!isObject(row) || typeof row.row !== "string") return false;
    given.set(row.row, [...(given.get(row.row) ?? []), row]);
  }
  for (let index = planSection.firstRow; index < planSection.firstRow + planSection.rows; index += 1) {
    const planRow = plan.rows[index];
    const row = given.get(planRow?.label ?? "")?.shift();
    const places = row === undefined || planRow === undefined ? undefined : placesOf(row, planRow.places);
    if (places === undefined || planRow === undefined) return false;
    for (let seat = planRow.first; seat < planRow.first + planRow.seats; seat += 1) {
      const point = places[plan.placeOf[seat] ?? 0];
      if (point === undefined || point === null) return false;
      drawing.putSeat(seat, point);
    }
  }
  return true;
}

/** The usual way from a seat to its neighbour: the lower quartile over the rows. */
export function pitchOf(plan: Plan, xy: Float32Array): number {
  const ways: number[] = [];
  for (const row of plan.rows) {
    const seat = row.first;
    if (row.seats < 2 || plan.placeOf[seat + 1] !== (plan.placeOf[seat] ?? 0) + 1) continue;
    const way = Math.hypot((xy[seat * 2] ?? 0) - (xy[seat * 2 + 2] ?? 0), (xy[seat * 2 + 1] ?? 0) - (xy[seat * 2 + 3] ?? 0));
    if (way > 0) ways.push(way);
  }
  ways.sort((one, other) => one - other);
  return ways[Math.floor(ways.length / 4)] ?? 1;
}

/** The convex hull of the seats of a section, moved outwards: its outline where the document gives none. */
export function hullOf(plan: Plan, xy: Float32Array, section: number, margin: number): Polygon {
  const planSection = plan.sections[section];
  if (planSection === undefined) return [];
  const points: Point[] = [];
  for (let seat = planSection.first; seat < planSection.first + planSection.seats; seat += 1) {
    const [x, y] = [xy[seat * 2] ?? 0, xy[seat * 2 + 1] ?? 0];
    points.push([x - margin, y - margin], [x + margin, y - margin], [x - margin, y + margin], [x + margin, y + margin]);
  }
  points.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
  const half = (all: Point[]): Point[] => {
    const chain: Point[] = [];
    for (const point of all) {
      while (chain.length >= 2) {
        const [a, b] = [chain[chain.length - 2] as Point, chain[chain.length - 1] as Point];
        if ((b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0]) > 0) break;
        chain.pop();
      }
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return [...half(points), ...half([...points].reverse())].flat();
}

function putOutlines(drawing: Drawing, outlines: ReadonlyMap<number, Polygon>, pitch: number): void {
  const { plan } = drawing;
  plan.sections.forEach((_, section) => {
    drawing.outline(section, outlines.get(section) ?? hullOf(plan, drawing.xy, section, pitch * 0.7));
  });
  for (const row of plan.rows) {
    if (row.seats < 2) continue;
    const [a, b] = [row.first * 2, (row.first + 1) * 2];
    const [x, y] = [drawing.xy[a] ?? 0, drawing.xy[a + 1] ?? 0];
    const [dx, dy] = [x - (drawing.xy[b] ?? 0), y - (drawing.xy[b + 1] ?? 0)];
    const way = Math.hypot(dx, dy) || 1;
    drawing.marks.push({ x: x + (dx / way) * pitch * 1.15, y: y + (dy / way) * pitch * 1.15, text: row.label });
  }
}

/** Puts the area of a general admission tier; false if it is none. */
function putArea(drawing: Drawing, area: Record<string, unknown>): boolean {
  const tier = drawing.plan.tiers.findIndex((one) => one.id === area.tier && one.spots > 0);
  const outline = polygonOf(area.outline);
  if (tier < 0 || outline === undefined) return false;
  drawing.spots[tier] = blockOf(outline);
  return true;
}

/** Standing places that the document does not draw lie below everything else. */
function putSpots(drawing: Drawing, pitch: number): void {
  const tiers = drawing.plan.tiers.flatMap((tier, index) => (tier.spots > 0 && drawing.spots[index] === undefined ? [index] : []));
  const all = [[...drawing.xy], ...drawing.shapes.map((shape) => shape.points), ...drawing.spots.map((block) => block?.outline ?? [])];
  const [left, , right, bottom] = boundsOf(all, 0);
  const width = Math.max(right - left, pitch * 20);
  tiers.forEach((tier, index) => {
    const from = left + (width * index) / tiers.length;
    const to = left + (width * (index + 1)) / tiers.length - pitch;
    const top = bottom + pitch * 3;
    drawing.spots[tier] = blockOf([from, top, to, top, to, top + pitch * 5, from, top + pitch * 5]);
  });
}

/** Reads a map document; undefined unless it gives every seat of the plan a place. */
export function readMapDocument(plan: Plan, value: unknown): Layout | undefined {
  if (!isObject(value) || !Array.isArray(value.sections)) return undefined;
  const shapes = shapesOf(value.outlines);
  if (shapes === undefined) return undefined;
  const drawing = new Drawing(plan);
  drawing.shapes.push(...shapes);
  const outlines = new Map<number, Polygon>();
  const open = new Set(plan.sections.keys());
  for (const one of value.sections as unknown[]) {
    if (!isObject(one)) return undefined;
    if (one.section === undefined || one.section === null) {
      if (!putArea(drawing, one)) return undefined;
      continue;
    }
    const isIt = (section: number): boolean => {
      const planSection = plan.sections[section];
      return planSection?.name === one.section && plan.tiers[planSection?.tier ?? -1]?.id === one.tier;
    };
    const section = [...open].find(isIt);
    if (section === undefined || !putSection(drawing, section, one.rows)) return undefined;
    open.delete(section);
    if (one.outline !== undefined && one.outline !== null) {
      const outline = polygonOf(one.outline);
      if (outline === undefined) return undefined;
      outlines.set(section, outline);
    }
  }
  if (open.size > 0) return undefined;
  const pitch = pitchOf(plan, drawing.xy);
  putOutlines(drawing, outlines, pitch);
  putSpots(drawing, pitch);
  return drawing.finish("document", pitch);
}
