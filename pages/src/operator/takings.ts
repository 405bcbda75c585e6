/** What the minutes of a sale's takings come to. */
import type { Schemas } from "../shared/api.ts";

/** A minute of it. */
export type Taking = Schemas["TakingPoint"];
/** What is told of a minute. */
export type Row = Exclude<keyof Taking, "at">;

/** What every sale has. */
const ALWAYS: readonly Row[] = ["orders", "tickets", "taken_minor", "returned", "given_back_minor"];
/** What is shown if there was some. */
const SELDOM: readonly Row[] = ["commission_minor", "unowned_minor"];

/** True if a row is an amount of money. */
export const isAmount = (row: Row): boolean => row.endsWith("_minor");

/** The rows that are shown. */
export const rowsOf = (points: readonly Taking[]): readonly Row[] =>
  [...ALWAYS, ...SELDOM.filter((row) => points.some((point) => point[row] !== 0))];

/** A row of all minutes together. */
export const sumOf = (points: readonly Taking[], row: Row): number => points.reduce((sum, point) => sum + point[row], 0);

/** Milliseconds until the takings are asked for again: each time a log is read. */
export const POLL_MS = 60_000;
