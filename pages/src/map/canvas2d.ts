/** Draws seats on a plain canvas, for browsers without WebGL2: only those on the screen, a path for each look. */

import type { Camera } from "./camera.ts";
import type { Colours } from "./colours.ts";
import type { SeatGrid } from "./grid.ts";
import { CHOSEN, FREE, LOST, OFFERED, TAKEN, UNKNOWN, WITHHELD } from "./state.ts";
import type { SeatRenderer } from "./webgl.ts";

/** The renderer on a plain canvas. */
export class CanvasRenderer implements SeatRenderer {
  readonly name = "canvas2d";
  private states: Uint8Array;
  private colours: Colours | undefined;

  constructor(
    private readonly context: CanvasRenderingContext2D, private readonly xy: Float32Array, private readonly tiers: Uint8Array,
    private readonly pitch: number, private readonly grid: SeatGrid,
  ) {
    this.states = new Uint8Array(tiers.length).fill(UNKNOWN);
  }

  setStates(states: Uint8Array): void {
    this.states = states.slice();
  }

  setColours(colours: Colours): void {
    this.colours = colours;
  }

  draw(camera: Camera, pixelRatio: number, fade: number): void {
    const { context, colours } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, context.canvas.width, context.canvas.height);
    if (fade <= 0 || colours === undefined) return;
    context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
    context.globalAlpha = fade;
    const half = this.pitch * 0.42 * camera.scale;
    const fills = new Map<string, Path2D>();
    const strokes = new Map<string, Path2D>();
    const path = (paths: Map<string, Path2D>, colour: string): Path2D => {
      const found = paths.get(colour) ?? new Path2D();
      paths.set(colour, found);
      return found;
    };
    const [left, top] = camera.toMap(-half, -half);
    const [right, bottom] = camera.toMap(camera.width + half, camera.height + half);
    this.grid.within(left, top, right, bottom, (seat) => {
      const [x, y] = camera.toScreen(this.xy[seat * 2] ?? 0, this.xy[seat * 2 + 1] ?? 0);
      this.addSeat(this.states[seat] ?? UNKNOWN, this.tiers[seat] ?? 0, x, y, half, colours, (colour) => path(fills, colour), (colour) => path(strokes, colour));
    });
    context.lineWidth = Math.max(1, half * 0.2);
    for (const [colour, shape] of fills) {
      context.fillStyle = colour;
      context.fill(shape);
    }
    for (const [colour, shape] of strokes) {
      context.strokeStyle = colour;
      context.stroke(shape);
    }
    context.globalAlpha = 1;
  }

  private addSeat(
    state: number, tier: number, x: number, y: number, half: number, colours: Colours,
    fill: (colour: string) => Path2D, stroke: (colour: string) => Path2D,
  ): void {
    const own = colours.tiers[tier] ?? colours.soft;
    const cross = (path: Path2D, size: number): void => {
      path.moveTo(x - size, y - size);
      path.lineTo(x + size, y + size);
      path.moveTo(x - size, y + size);
      path.lineTo(x + size, y - size);
    };
    switch (state) {
      case FREE:
        fill(own).rect(x - half, y - half, half * 2, half * 2);
        break;
      case TAKEN:
        stroke(colours.line).rect(x - half * 0.7, y - half * 0.7, half * 1.4, half * 1.4);
        break;
      case WITHHELD:
        fill(colours.line).rect(x - half * 0.3, y - half * 0.3, half * 0.6, half * 0.6);
        break;
      case CHOSEN: {
        fill(colours.text).rect(x - half * 1.1, y - half * 1.1, half * 2.2, half * 2.2);
        const tick = stroke(colours.raised);
        tick.moveTo(x - half * 0.5, y);
        tick.lineTo(x - half * 0.1, y + half * 0.4);
        tick.lineTo(x + half * 0.5, y - half * 0.45);
        break;
      }
      case LOST:
        cross(stroke(colours.bad), half * 0.7);
        break;
      case OFFERED:
        fill(own).rect(x - half, y - half, half * 2, half * 2);
        stroke(colours.text).rect(x - half, y - half, half * 2, half * 2);
        break;
      default:
        stroke(colours.line).rect(x - half * 0.8, y - half * 0.8, half * 1.6, half * 1.6);
    }
  }

  dispose(): void {}
}
