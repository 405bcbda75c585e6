/** Where the words of a seat stand: beside the seat, within the map, and never over it. */

/** A size in pixels. */
export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Pixels between the seat and its words. */
const GAP = 6;

/** The upper left corner of words of some size for a seat at (x, y), which reaches `half` to each side: above it, or below where there is no room. */
export function placeOfTip(x: number, y: number, half: number, tip: Size, map: Size): { left: number; top: number } {
  const above = y - half - GAP - tip.height;
  const left = Math.min(map.width - tip.width, Math.max(0, x - tip.width / 2));
  return { left: Math.max(0, left), top: above >= 0 ? above : y + half + GAP };
}
