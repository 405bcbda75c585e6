/** The colours of the map: those of the page, and one for each tier, for light and dark grounds. */

/** Red, green and blue, each 0 to 1. */
export type Colour = readonly [number, number, number];

/** Each has a contrast of 3 or more with its ground; neighbours differ in lightness too. */
const TIERS_ON_LIGHT = ["#0f6c8c", "#b4500a", "#4a2f9c", "#2f7a2c", "#a81f63", "#77660a", "#1e4fc2", "#7f3f2d"];
const TIERS_ON_DARK = ["#5fc3e4", "#f6a35c", "#b9a2ff", "#8fd480", "#ff8fc2", "#ddca55", "#8fb0ff", "#e2a48e"];

/** The colours of a map. */
export interface Colours {
  isDark: boolean;
  ground: string;
  raised: string;
  sunk: string;
  line: string;
  text: string;
  soft: string;
  accent: string;
  bad: string;
  tiers: string[];
}

/** How many tiers have a colour of their own. */
export const TIER_COLOURS = TIERS_ON_LIGHT.length;

/** The colour of a tier, as CSS takes it. */
export function tierColour(tier: number, isDark: boolean): string {
  const colours = isDark ? TIERS_ON_DARK : TIERS_ON_LIGHT;
  return colours[tier % colours.length] ?? "#777777";
}

/** True if the reader prefers a dark ground. */
export const prefersDark = (): boolean => matchMedia("(prefers-color-scheme: dark)").matches;

/** Reads the page's colours. */
export function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element);
  const read = (name: string): string => style.getPropertyValue(`--${name}`).trim() || "#888888";
  const isDark = prefersDark();
  return {
    isDark,
    ground: read("ground"), raised: read("raised"), sunk: read("sunk"), line: read("line"),
    text: read("text"), soft: read("soft"), accent: read("accent"), bad: read("bad"),
    tiers: isDark ? TIERS_ON_DARK : TIERS_ON_LIGHT,
  };
}

/** A colour such as `#0f6c8c` as three numbers. */
export function rgb(hex: string): Colour {
  const number = Number.parseInt(hex.replace("#", ""), 16);
  return [((number >> 16) & 255) / 255, ((number >> 8) & 255) / 255, (number & 255) / 255];
}
