/** Where a seat is, in the words of its hall or train: section, row and seat apart, from the layout in the sale's file. */
import { type FileForMap, type FileRow, type FileTier, rowLabels, shortOf } from "../map/plan.ts";
import { shared } from "./text.ts";

const { t } = shared;

/** A seat among its neighbours. */
export interface Place {
  /** The section of a hall, or the coach of a train. */
  readonly section: string;
  /** The row; null on a train, whose seats are called by row and letter together. */
  readonly row: string | null;
  /** The number or letter in the row; on a train as it is written on the seat, such as 01A. */
  readonly seat: string;
}

/** The place of a seat whose section, row and name are known; `letter` is that of its column, where it has one. */
export function placeIn(isTrain: boolean, section: string, row: string, name: string, letter: string | null): Place {
  const short = shortOf(name, letter, section, row);
  if (!isTrain) return { section, row, seat: short };
  const prefix = `${section}-`;
  return { section, row: null, seat: name.length > prefix.length && name.startsWith(prefix) ? name.slice(prefix.length) : row + short };
}

/** The place of a name in a row from the left; -1 if it is none of its seats. */
function placeInRow(name: string, section: string, row: string, seats: FileRow["seats"], columns: readonly (string | null)[]): number {
  if (Array.isArray(seats)) return seats.indexOf(name);
  if (seats === "every_column") return columns.findIndex((letter) => letter !== null && name === `${section}-${row}${letter}`);
  const prefix = seats.prefix ?? `${section}-${row}-`;
  if (!name.startsWith(prefix)) return -1;
  const digits = name.slice(prefix.length);
  const at = (Number(digits) - seats.first) / (seats.step ?? 1);
  if (!/^\d+$/.test(digits) || !Number.isInteger(at) || at < 0 || at >= seats.count) return -1;
  const aisles = (seats.aisles_after ?? []).filter((after) => {
    const before = (after - seats.first) / (seats.step ?? 1);
    return Number.isInteger(before) && before >= 0 && before < at;
  });
  return at + aisles.length;
}

function placeInTier(tier: FileTier, isTrain: boolean, name: string): Place | null {
  const columns = tier.columns ?? [];
  for (const section of tier.sections ?? []) {
    for (const called of [section.section, ...(section.alike ?? [])]) {
      for (const fileRow of section.rows) {
        for (const row of rowLabels(fileRow)) {
          const at = placeInRow(name, called, row, fileRow.seats, columns);
          if (at >= 0) return placeIn(isTrain, called, row, name, columns[at] ?? null);
        }
      }
    }
  }
  return null;
}

const known = new WeakMap<object, Map<string, Place | null>>();

/** Where a seat is; null if the layout does not know it, as no place of general admission. */
export function placeOf(file: FileForMap, name: string): Place | null {
  // Pages ask for the same few seats each time they render, and a stadium has thousands of rows.
  const places = known.get(file) ?? new Map<string, Place | null>();
  known.set(file, places);
  let place = places.get(name);
  if (place === undefined) {
    const isTrain = (file.stops ?? []).length > 0;
    place = file.tiers.reduce<Place | null>((found, tier) => found ?? placeInTier(tier, isTrain, name), null);
    places.set(name, place);
  }
  return place;
}

/** What of a sale's file says where its seats are, to be kept without the rest. */
export const layoutIn = ({ stops, tiers }: FileForMap): FileForMap => ({
  ...(stops === undefined ? {} : { stops: stops.map(({ stop, name }) => ({ stop, name })) }),
  tiers: tiers.map(({ tier, name, sections, columns }) => ({ tier, name, ...(sections === undefined ? {} : { sections }), ...(columns === undefined ? {} : { columns }) })),
});

/** A place in words: “Section Stalls, row G, seat 3”, “Coach 04, seat 01A”. */
export const placeText = ({ section, row, seat }: Place): string =>
  row === null ? t("seat.of-coach", { section, seat }) : t("seat.of-row", { section, row, seat });

/** A seat in words; by its name alone where its place is not known. */
export function seatText(file: FileForMap | null, name: string): string {
  const place = file === null ? null : placeOf(file, name);
  return place === null ? name : placeText(place);
}
