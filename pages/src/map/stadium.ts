/** The layout of a stadium or arena: rings of sections around a pitch, on which the standing places are. */

import { type Area, Drawing, type Layout, type Polygon, areasOf, blockOf, rectangle } from "./layout.ts";
import type { Plan } from "./plan.ts";
import { naturally } from "./rows.ts";

const SECTION_GAP = 2;
const RING_GAP = 3;
/** Fewer areas make no ring of their own. */
const LEAST_RING = 4;

/** A rounded rectangle around the origin: half its width and height, and the radius of its corners. */
interface Track {
  halfWidth: number;
  halfHeight: number;
  radius: number;
}

interface Ring {
  areas: Area[];
  depth: number;
  /** Length that its sections take. */
  length: number;
}

/** What the sections of a ring have in common: the name without its last digits. */
export function ringOf(name: string): string {
  const digits = /^(.*?)(\d+)$/.exec(name);
  if (digits === null) return "";
  const [, before = "", number = ""] = digits;
  return number.length > 2 ? before + number.slice(0, -2) : before === "" ? "0" : before;
}

function ringsOf(areas: Area[]): Ring[] {
  const byName = new Map<string, Area[]>();
  for (const area of areas) {
    const name = ringOf(area.name);
    byName.set(name, [...(byName.get(name) ?? []), area]);
  }
  const groups = [...byName.values()];
  const rings = groups.filter((group) => group.length >= LEAST_RING);
  const others = groups.filter((group) => group.length < LEAST_RING).flat();
  if (others.length > 0) rings.push(others);
  return rings.map((group) => ({
    areas: rotated(group),
    depth: Math.max(...group.map((area) => area.rows.length)),
    length: group.reduce((sum, area) => sum + area.places + SECTION_GAP, 0),
  }));
}

/** The sections by name, with the one that the file lists first (the best view) in the middle. */
function rotated(group: Area[]): Area[] {
  const sorted = [...group].sort((one, other) => naturally(one.name, other.name));
  const first = group[0];
  const best = first === undefined ? 0 : sorted.indexOf(first);
  const half = Math.floor(sorted.length / 2);
  return sorted.map((_, at) => sorted[(at + best - half + sorted.length * 2) % sorted.length] as Area);
}

function lengthOf(track: Track, outwards: number): number {
  const { halfWidth, halfHeight, radius } = track;
  return 4 * (halfWidth - radius) + 4 * (halfHeight - radius) + 2 * Math.PI * (radius + outwards);
}

/** A track that is long enough for each ring, and around at least `least` × 0.7 `least`. */
function trackFor(rings: Ring[], least: number): Track {
  const track = (halfWidth: number): Track => ({ halfWidth, halfHeight: halfWidth * 0.74, radius: halfWidth * 0.5 });
  let halfWidth = least;
  let outwards = 0;
  for (const ring of rings) {
    while (lengthOf(track(halfWidth), outwards) < ring.length) halfWidth += 1;
    outwards += ring.depth + RING_GAP;
  }
  return track(halfWidth);
}

/** A point of the track, `along` it clockwise from the middle of its top, moved outwards; and its outward direction. */
export function onTrack(track: Track, along: number, outwards: number): { x: number; y: number; nx: number; ny: number } {
  const { halfWidth, halfHeight, radius } = track;
  const [flat, tall] = [halfWidth - radius, halfHeight - radius];
  const arc = (Math.PI / 2) * (radius + outwards);
  const pieces = [flat, arc, 2 * tall, arc, 2 * flat, arc, 2 * tall, arc, flat];
  let rest = along;
  let piece = 0;
  while (piece < 8 && rest > (pieces[piece] ?? 0)) {
    rest -= pieces[piece] ?? 0;
    piece += 1;
  }
  const turn = (cx: number, cy: number, from: number): { x: number; y: number; nx: number; ny: number } => {
    const angle = from + rest / (radius + outwards);
    const [nx, ny] = [Math.cos(angle), Math.sin(angle)];
    return { x: cx + nx * (radius + outwards), y: cy + ny * (radius + outwards), nx, ny };
  };
  const quarter = Math.PI / 2;
  switch (piece) {
    case 0:
      return { x: rest, y: -halfHeight - outwards, nx: 0, ny: -1 };
    case 1:
      return turn(flat, -tall, -quarter);
    case 2:
      return { x: halfWidth + outwards, y: -tall + rest, nx: 1, ny: 0 };
    case 3:
      return turn(flat, tall, 0);
    case 4:
      return { x: flat - rest, y: halfHeight + outwards, nx: 0, ny: 1 };
    case 5:
      return turn(-flat, tall, quarter);
    case 6:
      return { x: -halfWidth - outwards, y: tall - rest, nx: -1, ny: 0 };
    case 7:
      return turn(-flat, -tall, 2 * quarter);
    default:
      return { x: -flat + rest, y: -halfHeight - outwards, nx: 0, ny: -1 };
  }
}

function putRing(drawing: Drawing, ring: Ring, track: Track, outwards: number): void {
  const total = lengthOf(track, outwards);
  const stretch = total / ring.length;
  let along = 0;
  for (const area of ring.areas) {
    const width = (area.places + SECTION_GAP) * stretch;
    const { x, y, nx, ny } = onTrack(track, along + width / 2, outwards);
    // Row 1 is the nearest to the pitch; its left end is that of who sits in it and looks at the pitch.
    drawing.putRows(area.rows, (dx, dy) => [x + ny * dx + nx * dy, y - nx * dx + ny * dy]);
    along += width;
  }
}

/** Puts a stage and the standing places, or a pitch, in the middle. */
function putMiddle(drawing: Drawing, track: Track, words: { stage: string; pitch: string }): void {
  const [width, height] = [track.halfWidth * 0.84, track.halfHeight * 0.8];
  const standing = drawing.plan.tiers.flatMap((tier, index) => (tier.spots > 0 ? [index] : []));
  if (standing.length === 0) {
    drawing.shapes.push({ kind: "pitch", label: words.pitch, points: rounded(width, height, Math.min(width, height) * 0.3) });
    return;
  }
  const stage = rectangle(-width * 0.55, -height, width * 0.55, -height * 0.66);
  drawing.shapes.push({ kind: "stage", label: words.stage, points: stage });
  const top = -height * 0.56;
  const share = (height - top) / standing.length;
  standing.forEach((tier, index) => {
    const from = top + index * share;
    drawing.spots[tier] = blockOf(rectangle(-width * 0.8, from, width * 0.8, from + share - 1));
  });
}

function rounded(halfWidth: number, halfHeight: number, radius: number): Polygon {
  const track = { halfWidth, halfHeight, radius };
  const total = lengthOf(track, 0);
  const points: Polygon = [];
  for (let at = 0; at < 64; at += 1) {
    const { x, y } = onTrack(track, (total * at) / 64, 0);
    points.push(x, y);
  }
  return points;
}

/** Lays a stadium out; `words` are what its stage and pitch are called. */
export function layOutStadium(plan: Plan, words: { stage: string; pitch: string }): Layout {
  const drawing = new Drawing(plan);
  const rings = ringsOf(areasOf(plan));
  const spots = plan.tiers.reduce((sum, tier) => sum + tier.spots, 0);
  const track = trackFor(rings, Math.max(18, Math.sqrt(spots) * 0.4));
  putMiddle(drawing, track, words);
  let outwards = 0;
  for (const ring of rings) {
    putRing(drawing, ring, track, outwards);
    outwards += ring.depth + RING_GAP;
  }
  return drawing.finish("stadium", 1, 3);
}
