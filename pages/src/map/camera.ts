/** What part of the map is shown: pan and zoom, in CSS pixels. */

/** Pixels from seat to seat at which the map is largest. */
const LARGEST_PITCH = 56;

/** The middle of a screen of some length that stays on what it shows; what is shorter than the screen is in its middle. */
function within(at: number, from: number, to: number, length: number): number {
  return to - from <= length ? (from + to) / 2 : Math.min(to - length / 2, Math.max(from + length / 2, at));
}

/** The part of a map that a screen of some size shows. */
export class Camera {
  /** Pixels of a unit of the map. */
  scale = 1;
  /** The point of the map in the middle of the screen. */
  x = 0;
  y = 0;
  width = 1;
  height = 1;

  constructor(private readonly bounds: readonly [number, number, number, number], private readonly pitch: number) {
    this.fit();
  }

  /** The scale at which all of the map is seen. */
  private get least(): number {
    const [left, top, right, bottom] = this.bounds;
    return Math.min(this.width / (right - left || 1), this.height / (bottom - top || 1));
  }

  private get most(): number {
    return Math.max(this.least, LARGEST_PITCH / this.pitch);
  }

  /** Shows all of the map. */
  fit(): void {
    const [left, top, right, bottom] = this.bounds;
    this.scale = this.least;
    [this.x, this.y] = [(left + right) / 2, (top + bottom) / 2];
  }

  /** Sets the size of the screen; what was in the middle stays there. */
  resize(width: number, height: number): void {
    const wasFitted = this.scale <= this.least * 1.001;
    [this.width, this.height] = [Math.max(1, width), Math.max(1, height)];
    if (wasFitted) this.fit();
    else this.clamp();
  }

  /** Moves by pixels. */
  pan(dx: number, dy: number): void {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.clamp();
  }

  /** Zooms; the point of the map that is at a pixel stays there. */
  zoomAt(px: number, py: number, factor: number): void {
    const [x, y] = this.toMap(px, py);
    this.scale = Math.min(this.most, Math.max(this.least, this.scale * factor));
    this.x = x - (px - this.width / 2) / this.scale;
    this.y = y - (py - this.height / 2) / this.scale;
    this.clamp();
  }

  /** The view in which a rectangle of the map fills the screen, seats no smaller than can be hit. */
  viewOf(left: number, top: number, right: number, bottom: number): { x: number; y: number; scale: number } {
    const whole = Math.min(this.width / (right - left || 1), this.height / (bottom - top || 1)) * 0.92;
    const scale = Math.min(this.most, Math.max(whole, this.least, 14 / this.pitch));
    return { x: (left + right) / 2, y: (top + bottom) / 2, scale };
  }

  /** The view of a rectangle in which seats have at least so many pixels; of one that is larger than the screen then, what is around a point. */
  viewAround(box: readonly [number, number, number, number], x: number, y: number, leastPitch: number): { x: number; y: number; scale: number } {
    const [left, top, right, bottom] = box;
    const whole = this.viewOf(left, top, right, bottom);
    const scale = Math.min(this.most, Math.max(whole.scale, leastPitch / this.pitch));
    return { x: within(x, left, right, this.width / scale), y: within(y, top, bottom, this.height / scale), scale };
  }

  /** Takes up a view. */
  set(view: { x: number; y: number; scale: number }): void {
    [this.x, this.y, this.scale] = [view.x, view.y, view.scale];
    this.clamp();
  }

  /** The point of the map at a pixel. */
  toMap(px: number, py: number): [number, number] {
    return [this.x + (px - this.width / 2) / this.scale, this.y + (py - this.height / 2) / this.scale];
  }

  /** The pixel at which a point of the map is. */
  toScreen(x: number, y: number): [number, number] {
    return [(x - this.x) * this.scale + this.width / 2, (y - this.y) * this.scale + this.height / 2];
  }

  /** True if all of the map is seen. */
  isWhole(): boolean {
    return this.scale <= this.least * 1.001;
  }

  /** Keeps the middle of the screen on the map, and the map in the middle if it is smaller than the screen. */
  private clamp(): void {
    const [left, top, right, bottom] = this.bounds;
    this.x = within(this.x, left, right, this.width / this.scale);
    this.y = within(this.y, top, bottom, this.height / this.scale);
  }
}
