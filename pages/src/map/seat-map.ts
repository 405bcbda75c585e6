/** The map on the screen: two canvases, pointers, and a frame when something has changed. */

import { Camera } from "./camera.ts";
import { CanvasRenderer } from "./canvas2d.ts";
import { type Colours, TIER_COLOURS, coloursOf } from "./colours.ts";
import { SeatGrid } from "./grid.ts";
import { type Layout, isWithin } from "./layout.ts";
import { type Counts, Overlay, seatFade } from "./overlay.ts";
import { type Plan, sectionOf, tierOf } from "./plan.ts";
import { choosesAt, choosesFrom } from "./press.ts";
import { UNKNOWN } from "./state.ts";
import { type SeatRenderer, WebglRenderer } from "./webgl.ts";

/** A seat that a mouse is over: where it is in the element of the map, and how far it reaches to each side, in pixels. */
export interface Hovered {
  readonly seat: number;
  readonly x: number;
  readonly y: number;
  readonly half: number;
}

/** What the map tells the page. */
export interface MapEvents {
  /** A seat was pointed at and pressed. */
  onSeat(seat: number): void;
  /** A section was pressed while sections are shown. */
  onSection(section: number): void;
  /** The standing places of a tier were pressed. */
  onSpots(tier: number): void;
  /** A mouse is over another seat than before, or over none. */
  onHover(over: Hovered | undefined): void;
  /** A number in the language of the page. */
  write(count: number): string;
}

/** What is measured, as `window.onsaleMap`. */
export interface MapMeasures {
  /** Script milliseconds of the last frame. */
  frameMs: number;
  /** Script milliseconds of the last 600 frames. */
  frames: number[];
  /** Frames that were drawn since the map was opened. */
  drawn: number;
  seats: number;
  renderer: string;
  /** Pixels from seat to seat. */
  pitchPixels: number;
}

declare global {
  interface Window {
    onsaleMap?: MapMeasures;
  }
}

/** Pixels that a press may move and still be a press, and within which it finds a seat. */
const PRESS_PIXELS = 6;
const REACH_PIXELS = 14;

/** A map in an element of the page. */
export class SeatMap {
  private readonly camera: Camera;
  private readonly grid: SeatGrid;
  private readonly overlay: Overlay;
  private readonly texts: HTMLCanvasElement;
  private readonly tiers: Uint8Array;
  private seats: HTMLCanvasElement;
  private renderer: SeatRenderer;
  private colours: Colours;
  private states: Uint8Array;
  private counts: Counts = { bySection: undefined, byTier: undefined };
  private open: number | undefined;
  private frame = 0;
  private moving = 0;
  private pixelRatio = 1;
  private readonly ending = new AbortController();
  private readonly resizing: ResizeObserver;
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private pressed: { x: number; y: number } | undefined;
  private hovered: number | undefined;
  private readonly measures: MapMeasures;

  constructor(private readonly host: HTMLElement, private readonly plan: Plan, private readonly layout: Layout, private readonly events: MapEvents) {
    this.tiers = Uint8Array.from({ length: plan.seats }, (_, seat) => tierOf(plan, seat) % TIER_COLOURS);
    this.states = new Uint8Array(plan.seats).fill(UNKNOWN);
    this.camera = new Camera(layout.bounds, layout.pitch);
    this.grid = new SeatGrid(layout.xy, layout.bounds, layout.pitch);
    this.colours = coloursOf(host);
    this.seats = this.addCanvas();
    this.renderer = this.openRenderer(true);
    this.texts = this.addCanvas();
    const context = this.texts.getContext("2d");
    if (context === null) throw new Error("no canvas");
    this.overlay = new Overlay(context, plan, layout, this.grid, (count) => events.write(count));
    this.measures = { frameMs: 0, frames: [], drawn: 0, seats: plan.seats, renderer: this.renderer.name, pitchPixels: 0 };
    window.onsaleMap = this.measures;
    this.resizing = new ResizeObserver(() => this.resize());
    this.resizing.observe(host);
    this.listen();
    this.resize();
    this.camera.fit();
  }

  private addCanvas(): HTMLCanvasElement {
    const canvas = document.createElement("canvas");
    canvas.setAttribute("aria-hidden", "true");
    this.host.append(canvas);
    return canvas;
  }

  /** WebGL2 if there is, else a plain canvas. */
  private openRenderer(mayUseWebgl: boolean): SeatRenderer {
    const { xy, pitch } = this.layout;
    const gl = mayUseWebgl ? this.seats.getContext("webgl2", { antialias: false, premultipliedAlpha: true }) : null;
    if (gl !== null) {
      try {
        const renderer = new WebglRenderer(gl, xy, this.tiers, pitch);
        renderer.setColours(this.colours);
        renderer.setStates(this.states);
        this.seats.addEventListener("webglcontextlost", () => this.replaceRenderer(), { signal: this.ending.signal, once: true });
        return renderer;
      } catch {
        this.replaceCanvas();
      }
    }
    const context = this.seats.getContext("2d");
    if (context === null) throw new Error("no canvas");
    const renderer = new CanvasRenderer(context, xy, this.tiers, pitch, this.grid);
    renderer.setColours(this.colours);
    renderer.setStates(this.states);
    return renderer;
  }

  /** A canvas that had WebGL has nothing else: another takes its place. */
  private replaceCanvas(): void {
    const other = this.addCanvas();
    this.seats.replaceWith(other);
    this.seats = other;
  }

  private replaceRenderer(): void {
    if (this.ending.signal.aborted) return;
    this.replaceCanvas();
    this.renderer = this.openRenderer(false);
    this.measures.renderer = this.renderer.name;
    this.resize();
  }

  /** Sets states and counts, and draws them if they have changed. */
  setStates(states: Uint8Array, counts: Counts): void {
    const isSame = (one: ArrayLike<number> | undefined, other: ArrayLike<number> | undefined): boolean =>
      one?.length === other?.length && Array.prototype.every.call(one ?? [], (value, at) => value === other?.[at]);
    const areSame = isSame(states, this.states);
    if (areSame && isSame(counts.bySection, this.counts.bySection) && isSame(counts.byTier, this.counts.byTier)) return;
    this.states = states;
    this.counts = counts;
    if (!areSame) this.renderer.setStates(states);
    this.request();
  }

  /** Marks the section that is open beside the map. */
  setOpen(section: number | undefined): void {
    this.open = section;
    this.request();
  }

  /** Zooms by a factor around the middle. */
  zoom(factor: number): void {
    this.hover(undefined);
    this.camera.zoomAt(this.camera.width / 2, this.camera.height / 2, factor);
    this.request();
  }

  /** Shows everything. */
  fit(): void {
    const [left, top, right, bottom] = this.layout.bounds;
    this.moveTo({ ...this.camera.viewOf(left, top, right, bottom), scale: 0 });
  }

  /** Goes to a section. */
  goToSection(section: number): void {
    const box = this.overlay.boxOf(section);
    if (box !== undefined) this.moveTo(this.camera.viewOf(...box));
  }

  /** Goes to seats, near enough to see what is around them. */
  goToSeats(seats: readonly number[]): void {
    if (seats.length === 0) return;
    const xs = seats.map((seat) => this.layout.xy[seat * 2] ?? 0);
    const ys = seats.map((seat) => this.layout.xy[seat * 2 + 1] ?? 0);
    const around = this.layout.pitch * 8;
    this.moveTo(this.camera.viewOf(Math.min(...xs) - around, Math.min(...ys) - around, Math.max(...xs) + around, Math.max(...ys) + around));
  }

  /** Goes to a view, at once if motion is to be reduced. */
  private moveTo(view: { x: number; y: number; scale: number }): void {
    this.hover(undefined);
    cancelAnimationFrame(this.moving);
    const end = new Camera(this.layout.bounds, this.layout.pitch);
    end.resize(this.camera.width, this.camera.height);
    if (view.scale > 0) end.set(view);
    const to = { x: end.x, y: end.y, scale: end.scale };
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.camera.set(to);
      this.request();
      return;
    }
    const from = { x: this.camera.x, y: this.camera.y, scale: this.camera.scale };
    const start = performance.now();
    const step = (now: number): void => {
      const share = Math.min(1, Math.max(0, (now - start) / 260));
      const eased = 1 - (1 - share) ** 3;
      const between = (one: number, other: number): number => one + (other - one) * eased;
      this.camera.set({ x: between(from.x, to.x), y: between(from.y, to.y), scale: from.scale * (to.scale / from.scale) ** eased });
      this.request();
      if (share < 1) this.moving = requestAnimationFrame(step);
    };
    this.moving = requestAnimationFrame(step);
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.host;
    this.pixelRatio = Math.min(2, window.devicePixelRatio || 1);
    for (const canvas of [this.seats, this.texts]) {
      if (canvas === undefined) continue;
      canvas.width = Math.max(1, Math.round(clientWidth * this.pixelRatio));
      canvas.height = Math.max(1, Math.round(clientHeight * this.pixelRatio));
    }
    this.camera.resize(clientWidth, clientHeight);
    this.hover(undefined);
    this.request();
  }

  /** Draws with the next frame; nothing is drawn while nothing changes. */
  private request(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const start = performance.now();
      const pitchPixels = this.camera.scale * this.layout.pitch;
      this.renderer.draw(this.camera, this.pixelRatio, seatFade(pitchPixels));
      this.overlay.draw(this.camera, this.pixelRatio, this.colours, this.counts, this.states, this.open);
      const { measures } = this;
      measures.frameMs = performance.now() - start;
      measures.pitchPixels = pitchPixels;
      measures.drawn += 1;
      measures.frames.push(measures.frameMs);
      if (measures.frames.length > 600) measures.frames.shift();
    });
  }

  private listen(): void {
    const { signal } = this.ending;
    const on = <Name extends keyof HTMLElementEventMap>(name: Name, listener: (event: HTMLElementEventMap[Name]) => void, passive = true): void =>
      this.host.addEventListener(name, listener, { signal, passive });
    on("pointerdown", (event) => this.down(event));
    on("pointermove", (event) => this.move(event));
    on("pointerup", (event) => this.up(event));
    on("pointercancel", (event) => this.cancel(event));
    on("pointerleave", () => this.hover(undefined));
    on("wheel", (event) => this.wheel(event), false);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour(), { signal });
  }

  private recolour(): void {
    this.colours = coloursOf(this.host);
    this.renderer.setColours(this.colours);
    this.request();
  }

  private at(event: MouseEvent): { x: number; y: number } {
    const { left, top } = this.host.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  private down(event: PointerEvent): void {
    cancelAnimationFrame(this.moving);
    const at = this.at(event);
    this.pointers.set(event.pointerId, at);
    this.pressed = this.pointers.size === 1 ? at : undefined;
    // A pointer that is gone already cannot be captured.
    if (event.isTrusted) this.host.setPointerCapture(event.pointerId);
  }

  private move(event: PointerEvent): void {
    const at = this.at(event);
    const before = this.pointers.get(event.pointerId);
    if (before === undefined) {
      this.hover(event.pointerType === "mouse" ? this.seatAt(at.x, at.y, event.pointerType) : undefined);
      return;
    }
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, other]) => other);
    this.pointers.set(event.pointerId, at);
    if (this.pressed !== undefined && Math.hypot(at.x - this.pressed.x, at.y - this.pressed.y) > PRESS_PIXELS) this.pressed = undefined;
    if (this.pressed !== undefined) return;
    this.hover(undefined);
    const other = others[0];
    if (other === undefined) {
      this.camera.pan(at.x - before.x, at.y - before.y);
    } else {
      const factor = Math.hypot(at.x - other.x, at.y - other.y) / Math.max(1, Math.hypot(before.x - other.x, before.y - other.y));
      this.camera.pan((at.x - before.x) / 2, (at.y - before.y) / 2);
      this.camera.zoomAt((at.x + other.x) / 2, (at.y + other.y) / 2, factor);
    }
    this.request();
  }

  /** Tells of the seat below the mouse when it is another one. */
  private hover(seat: number | undefined): void {
    if (seat === this.hovered) return;
    this.hovered = seat;
    if (seat === undefined) {
      this.events.onHover(undefined);
      return;
    }
    const { xy, pitch } = this.layout;
    const [x, y] = this.camera.toScreen(xy[seat * 2] ?? 0, xy[seat * 2 + 1] ?? 0);
    this.events.onHover({ seat, x, y, half: (this.camera.scale * pitch) / 2 });
  }

  private cancel(event: PointerEvent): void {
    this.pointers.delete(event.pointerId);
    this.pressed = undefined;
  }

  private up(event: PointerEvent): void {
    const pressed = this.pressed;
    this.cancel(event);
    if (pressed === undefined) return;
    const seat = this.seatAt(pressed.x, pressed.y, event.pointerType);
    const chooses = choosesAt(this.camera.scale * this.layout.pitch, event.pointerType);
    if (seat !== undefined && chooses) {
      this.events.onSeat(seat);
      return;
    }
    const point = this.camera.toMap(pressed.x, pressed.y);
    const block = seat === undefined ? this.overlay.blockAt(...point, isWithin) : { section: sectionOf(this.plan, seat), tier: 0 };
    if (block === undefined) return;
    if (block.section === undefined) {
      this.events.onSpots(block.tier);
      return;
    }
    this.events.onSection(block.section);
    const box = this.overlay.boxOf(block.section);
    if (!chooses && box !== undefined) this.moveTo(this.camera.viewAround(box, ...point, choosesFrom(event.pointerType)));
  }

  /** The seat at a pixel, if seats are shown. */
  private seatAt(px: number, py: number, pointer: string): number | undefined {
    const pitchPixels = this.camera.scale * this.layout.pitch;
    if (seatFade(pitchPixels) < 0.5) return undefined;
    const reach = Math.max(pitchPixels * 0.62, pointer === "touch" ? REACH_PIXELS : 0) / this.camera.scale;
    return this.grid.nearest(...this.camera.toMap(px, py), reach);
  }

  /** The wheel scrolls the page, unless a key says that it zooms; so does a pinch on a trackpad. */
  private wheel(event: WheelEvent): void {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.hover(undefined);
    const { x, y } = this.at(event);
    this.camera.zoomAt(x, y, Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.004)));
    this.request();
  }

  /** Takes the map off the page. */
  dispose(): void {
    this.ending.abort();
    this.resizing.disconnect();
    cancelAnimationFrame(this.frame);
    cancelAnimationFrame(this.moving);
    this.renderer.dispose();
    this.seats.remove();
    this.texts.remove();
    if (window.onsaleMap === this.measures) delete window.onsaleMap;
  }
}
