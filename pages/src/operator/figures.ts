/** What the figures of the last minutes come to. */
import type { Schemas } from "../shared/api.ts";

/** What the metrics say of a sale's last minutes. */
export type Figures = Schemas["Figures"];
/** A minute of it. */
export type Point = Schemas["FigurePoint"];
/** What is counted in a minute. */
export type Count = Exclude<keyof Point, "at">;

/** What every sale has. */
const OF_SALE = ["admitted", "waiting", "held", "paid", "expired", "cancelled"] as const;
/** What a sale with a waiting room has. */
const OF_ROOM = ["joined", "served", "came"] as const;

/** The counts that are shown: those of a waiting room if there was something to count. */
export function countsOf(points: readonly Point[]): readonly Count[] {
  const hasRoom = OF_ROOM.some((count) => points.some((point) => point[count] > 0));
  return hasRoom ? [...OF_ROOM, ...OF_SALE] : OF_SALE;
}

/** A count of all minutes together. */
export const total = (points: readonly Point[], count: Count): number => points.reduce((sum, point) => sum + point[count], 0);

/** A count of the last minute that is over; null if there is none. */
export function lastMinute({ points, delay_seconds: delay }: Figures, count: Count): number | null {
  const over = delay > 0 ? points : points.slice(0, -1);
  return over.at(-1)?.[count] ?? null;
}

/** A bar of a minute, in a picture of 100 by 24. */
export interface Bar {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Width and height of the picture. */
export const [WIDTH, HEIGHT] = [100, 24];
/** The least height of what is not zero. */
const LEAST = 1;

/** The bars of what each minute has, the highest as high as the picture. A minute that has none, or less, has no bar. */
export function barsOf(minutes: readonly number[]): readonly Bar[] {
  const highest = Math.max(1, ...minutes);
  const step = WIDTH / Math.max(1, minutes.length);
  return minutes.flatMap((has, place) => {
    const height = Math.max(LEAST, (has / highest) * HEIGHT);
    return has <= 0 ? [] : [{ x: place * step, y: HEIGHT - height, width: step * 0.8, height }];
  });
}

/** How long a bar of a list is, of 100: the longest is the first one's. */
export const share = (of: number, longest: number): number => (longest <= 0 ? 0 : (of / longest) * 100);

/** Milliseconds until the figures are asked for again: live ones soon, others when there is a new minute. */
export const pollMs = (figures: Figures | null): number => (figures !== null && figures.delay_seconds > 0 ? figures.period_seconds * 1_000 : 5_000);
