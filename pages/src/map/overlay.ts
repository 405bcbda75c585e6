/** What is drawn over the seats: stages and coaches, sections with what is left in them, and texts. */

import type { Camera } from "./camera.ts";
import type { Colours } from "./colours.ts";
import type { SeatGrid } from "./grid.ts";
import type { Block, Layout, Polygon } from "./layout.ts";
import { type Plan, shortName } from "./plan.ts";
import { FREE, OFFERED } from "./state.ts";

/** Pixels from seat to seat from which marks and the seats' own names are written. */
const MARKS_FROM = 10;
const NAMES_FROM = 22;

/** What is left, for the labels. */
export interface Counts {
  /** Free seats of each section; undefined while nothing is known. */
  bySection: Uint32Array | undefined;
  /** What is left of each tier, -1 if it does not sell the journey. */
  byTier: Int32Array | undefined;
}

/** How visible seats are at a zoom, 0 to 1: below, sections are shown in their place. */
export function seatFade(pitchPixels: number): number {
  return Math.min(1, Math.max(0, (pitchPixels - 4.8) / 0.8));
}

function pathOf(points: Polygon): Path2D {
  const path = new Path2D();
  for (let at = 0; at < points.length; at += 2) {
    if (at === 0) path.moveTo(points[0] ?? 0, points[1] ?? 0);
    else path.lineTo(points[at] ?? 0, points[at + 1] ?? 0);
  }
  path.closePath();
  return path;
}

interface Drawn {
  path: Path2D;
  block: Block;
  tier: number;
  name: string;
  /** Left, top, right and bottom. */
  box: [number, number, number, number];
  /** In units of the map. */
  area: number;
  /** The index of its section; undefined for spots. */
  section: number | undefined;
}

function boxOf(points: Polygon): [number, number, number, number] {
  const xs = points.filter((_, at) => at % 2 === 0);
  const ys = points.filter((_, at) => at % 2 === 1);
  return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
}

/** The area of a polygon. */
function areaOf(points: Polygon): number {
  let twice = 0;
  for (let at = 0, before = points.length - 2; at < points.length; before = at, at += 2) {
    twice += (points[before] ?? 0) * (points[at + 1] ?? 0) - (points[at] ?? 0) * (points[before + 1] ?? 0);
  }
  return Math.abs(twice) / 2;
}

/** Draws on a canvas over that of the seats. */
export class Overlay {
  private readonly shapes: { path: Path2D; shape: Layout["shapes"][number]; box: [number, number, number, number] }[];
  private readonly blocks: Drawn[];
  /** Short names, made when they are first written. */
  private readonly names = new Map<number, string>();

  constructor(
    private readonly context: CanvasRenderingContext2D, private readonly plan: Plan, private readonly layout: Layout,
    private readonly grid: SeatGrid, private readonly write: (count: number) => string,
  ) {
    this.shapes = layout.shapes.map((shape) => ({ path: pathOf(shape.points), shape, box: boxOf(shape.points) }));
    const block = (one: Block, tier: number, name: string, section: number | undefined): Drawn =>
      ({ path: pathOf(one.outline), block: one, tier, name, box: boxOf(one.outline), area: areaOf(one.outline), section });
    this.blocks = layout.sections.map((one, index) => {
      const section = plan.sections[index];
      return block(one, section?.tier ?? 0, section?.name ?? "", index);
    });
    layout.spots.forEach((one, tier) => {
      if (one !== undefined) this.blocks.push(block(one, tier, plan.tiers[tier]?.name ?? "", undefined));
    });
  }

  /** Draws everything. `open` is the section that is open beside the map. */
  draw(camera: Camera, pixelRatio: number, colours: Colours, counts: Counts, states: Uint8Array, open: number | undefined): void {
    const { context } = this;
    const pitchPixels = camera.scale * this.layout.pitch;
    const fade = seatFade(pitchPixels);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, context.canvas.width, context.canvas.height);
    const scale = camera.scale * pixelRatio;
    const transform = (): void => context.setTransform(
      scale, 0, 0, scale, (camera.width / 2) * pixelRatio - camera.x * scale, (camera.height / 2) * pixelRatio - camera.y * scale,
    );
    transform();
    this.drawShapes(camera, colours);
    this.drawBlocks(camera, colours, counts, fade, open);
    context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
    context.textAlign = "center";
    context.textBaseline = "middle";
    this.writeShapes(camera, colours);
    this.writeBlocks(camera, colours, counts, fade);
    if (pitchPixels >= MARKS_FROM) this.writeMarks(camera, colours, pitchPixels);
    if (pitchPixels >= NAMES_FROM) this.writeNames(camera, colours, states, pitchPixels);
  }

  private isSeen(camera: Camera, [left, top, right, bottom]: readonly [number, number, number, number]): boolean {
    const [x0, y0] = camera.toMap(0, 0);
    const [x1, y1] = camera.toMap(camera.width, camera.height);
    return right >= x0 && left <= x1 && bottom >= y0 && top <= y1;
  }

  private drawShapes(camera: Camera, colours: Colours): void {
    const { context } = this;
    context.lineWidth = 1.2 / camera.scale;
    for (const { path, shape, box } of this.shapes) {
      if (!this.isSeen(camera, box)) continue;
      context.strokeStyle = colours.soft;
      if (shape.kind === "stage") {
        context.fillStyle = colours.soft;
        context.fill(path);
      } else if (shape.kind !== "coach") {
        context.fillStyle = colours.sunk;
        if (shape.kind === "pitch") context.fill(path);
        context.stroke(path);
      } else {
        context.stroke(path);
      }
    }
  }

  private drawBlocks(camera: Camera, colours: Colours, counts: Counts, fade: number, open: number | undefined): void {
    const { context } = this;
    for (const { path, tier, box, section } of this.blocks) {
      if (!this.isSeen(camera, box)) continue;
      const own = colours.tiers[tier % colours.tiers.length] ?? colours.soft;
      const isSpots = section === undefined;
      const isEmpty = this.leftIn(section, tier, counts) === 0;
      const cover = isSpots ? 1 : 1 - fade;
      if (cover > 0) {
        context.globalAlpha = cover;
        context.fillStyle = colours.raised;
        context.fill(path);
        context.globalAlpha = cover * (isEmpty ? 0.08 : colours.isDark ? 0.34 : 0.2);
        context.fillStyle = isEmpty ? colours.soft : own;
        context.fill(path);
      }
      const isOpen = section !== undefined && section === open;
      // A coach has an outline of its own.
      if (this.layout.kind === "train" && !isSpots && !isOpen && cover < 0.5) continue;
      context.globalAlpha = isOpen || cover > 0.5 ? 1 : 0.45;
      context.strokeStyle = isOpen ? colours.text : isEmpty ? colours.line : own;
      context.lineWidth = (isOpen ? 2.5 : 1.2) / camera.scale;
      context.stroke(path);
      context.globalAlpha = 1;
    }
  }

  private leftIn(section: number | undefined, tier: number, counts: Counts): number | undefined {
    if (counts.byTier !== undefined && (counts.byTier[tier] ?? -1) < 0) return 0;
    return section === undefined ? counts.byTier?.[tier] : counts.bySection?.[section];
  }

  private text(words: string, x: number, y: number, pixels: number, colour: string, weight = 400): void {
    this.context.font = `${weight} ${pixels}px system-ui, sans-serif`;
    this.context.fillStyle = colour;
    this.context.fillText(words, x, y);
  }

  private writeShapes(camera: Camera, colours: Colours): void {
    for (const { shape, box } of this.shapes) {
      if (shape.label === undefined || !this.isSeen(camera, box)) continue;
      const [left, top] = camera.toScreen(box[0], box[1]);
      const [right, bottom] = camera.toScreen(box[2], box[3]);
      if (shape.kind === "coach") {
        this.context.textAlign = "left";
        const pixels = Math.min(18, Math.max(9, camera.scale * 1.1));
        if (camera.scale >= 4) this.text(shape.label, left + 4, top - pixels * 0.68, pixels, colours.text, 600);
        this.context.textAlign = "center";
        continue;
      }
      const pixels = Math.min(22, Math.max(11, (bottom - top) * 0.4), ((right - left) / Math.max(1, shape.label.length)) * 1.4);
      if (pixels < 8) continue;
      const colour = shape.kind === "stage" ? colours.raised : colours.soft;
      this.text(shape.label, (left + right) / 2, (top + bottom) / 2, pixels, colour, 600);
    }
  }

  /** Names of sections and what is left in them, where there is room. */
  private writeBlocks(camera: Camera, colours: Colours, counts: Counts, fade: number): void {
    const { context } = this;
    for (const { block, box, area, name, tier, section } of this.blocks) {
      const visible = section === undefined ? 1 : 1 - fade;
      if (visible <= 0 || !this.isSeen(camera, box)) continue;
      const [x, y] = camera.toScreen(block.x, block.y);
      // Turned and odd shapes have less room than their bounds: a square of the same area counts.
      const side = Math.sqrt(area) * camera.scale;
      const width = Math.min((box[2] - box[0]) * camera.scale, side * 2);
      const height = Math.min((box[3] - box[1]) * camera.scale, side);
      const pixels = Math.min(16, height / 2.5, (width / Math.max(3, name.length)) * 1.4);
      if (pixels < 7) continue;
      context.globalAlpha = visible;
      const left = this.leftIn(section, tier, counts);
      const hasRoom = left !== undefined && height > pixels * 2.3;
      this.text(name, x, hasRoom ? y - pixels * 0.55 : y, pixels, left === 0 ? colours.soft : colours.text, 600);
      if (hasRoom) this.text(this.write(left), x, y + pixels * 0.6, pixels * 0.9, colours.soft);
      context.globalAlpha = 1;
    }
  }

  private writeMarks(camera: Camera, colours: Colours, pitchPixels: number): void {
    const pixels = Math.min(15, pitchPixels * 0.6);
    for (const mark of this.layout.marks) {
      const [x, y] = camera.toScreen(mark.x, mark.y);
      if (x < -30 || y < -30 || x > camera.width + 30 || y > camera.height + 30) continue;
      this.text(mark.text, x, y, pixels, colours.soft);
    }
  }

  private writeNames(camera: Camera, colours: Colours, states: Uint8Array, pitchPixels: number): void {
    const [left, top] = camera.toMap(0, 0);
    const [right, bottom] = camera.toMap(camera.width, camera.height);
    const { xy } = this.layout;
    this.context.font = `600 ${Math.min(16, pitchPixels * 0.36)}px system-ui, sans-serif`;
    this.context.fillStyle = colours.raised;
    this.grid.within(left, top, right, bottom, (seat) => {
      if (states[seat] !== FREE && states[seat] !== OFFERED) return;
      const [x, y] = camera.toScreen(xy[seat * 2] ?? 0, xy[seat * 2 + 1] ?? 0);
      let name = this.names.get(seat);
      if (name === undefined) {
        name = shortName(this.plan, seat);
        this.names.set(seat, name);
      }
      if (name.length <= 4) this.context.fillText(name, x, y);
    });
  }

  /** The section or the spots at a point of the map. */
  blockAt(x: number, y: number, isWithin: (points: Polygon, x: number, y: number) => boolean): { section?: number; tier: number } | undefined {
    for (let at = this.blocks.length - 1; at >= 0; at -= 1) {
      const drawn = this.blocks[at];
      if (drawn === undefined) continue;
      const { box, block, section, tier } = drawn;
      if (x < box[0] || x > box[2] || y < box[1] || y > box[3] || !isWithin(block.outline, x, y)) continue;
      return section === undefined ? { tier } : { section, tier };
    }
    return undefined;
  }

  /** Left, top, right and bottom of a section. */
  boxOf(section: number): [number, number, number, number] | undefined {
    return this.blocks.find((drawn) => drawn.section === section)?.box;
  }
}
