/** The seats of a sale as its file describes them, and where each lies in the bitmaps of availability. */

/** A run of numbered seats in a sale file. */
export interface Run {
  prefix?: string;
  first: number;
  count: number;
  step?: number;
  aisles_after?: number[];
}

/** A row of a section in a sale file, or a range of rows. */
export interface FileRow {
  row: string;
  to?: string;
  seats: (string | null)[] | Run | "every_column";
}

/** A section in a sale file. */
export interface FileSection {
  section: string;
  alike?: string[];
  rows: FileRow[];
}

/** A fare of a train. */
export interface Fare {
  from: string;
  to: string;
  price_minor: number;
}

/** A tier in a sale file. */
export interface FileTier {
  tier: string;
  name: string;
  price_minor?: number | null;
  fares?: Fare[];
  sections?: FileSection[];
  general_admission?: number | null;
  columns?: (string | null)[];
  not_for_sale?: string[];
}

/** What the map needs of a sale file. */
export interface FileForMap {
  stops?: { stop: string; name: string }[];
  tiers: FileTier[];
}

/** The grid of a tier's bitmap. */
export interface TierGrid {
  tier: string;
  rows: number;
  row_bytes: number;
  seats: number;
}

/** A tier of the plan. `spots` is above 0 for general admission, which has no seats of its own here. */
export interface PlanTier {
  id: string;
  name: string;
  columns: (string | null)[];
  rowBytes: number;
  spots: number;
}

/** A row: its places from left to right, of which some are no seats. */
export interface PlanRow {
  section: number;
  label: string;
  /** Index of its first seat. */
  first: number;
  /** Number of seats. */
  seats: number;
  /** Number of places, gaps included. */
  places: number;
}

/** A section of one tier. */
export interface PlanSection {
  tier: number;
  name: string;
  firstRow: number;
  rows: number;
  first: number;
  seats: number;
}

/** Every seat of a sale by its index, which is also its index on the map. */
export interface Plan {
  isTrain: boolean;
  tiers: PlanTier[];
  sections: PlanSection[];
  rows: PlanRow[];
  /** Number of seats. */
  seats: number;
  /** The row of each seat. */
  rowOf: Uint32Array;
  /** The place of each seat in its row, from 0. */
  placeOf: Uint16Array;
  /** The bit of each seat in the bitmap of its tier. */
  bitOf: Uint32Array;
  /** 1 where a seat of the plan is not sold. */
  withheld: Uint8Array;
  names: string[];
}

/** One or two capital letters as a number (A is 1, AA 27); 0 if they are none. */
export function lettersToNumber(text: string): number {
  if (!/^[A-Z]{1,2}$/.test(text)) return 0;
  let number = 0;
  for (const letter of text) number = number * 26 + letter.charCodeAt(0) - 64;
  return number;
}

function numberToLetters(number: number): string {
  const letter = (at: number): string => String.fromCharCode(65 + (at % 26));
  return number <= 26 ? letter(number - 1) : letter(Math.floor((number - 1) / 26) - 1) + letter(number - 1);
}

/** The labels of a row or of a range of rows. */
export function rowLabels(row: FileRow): string[] {
  if (row.to === undefined || row.to === null) return [row.row];
  const first = lettersToNumber(row.row);
  const last = lettersToNumber(row.to);
  const between = (from: number, to: number, write: (at: number) => string): string[] => {
    const labels: string[] = [];
    const step = from <= to ? 1 : -1;
    for (let at = from; at !== to + step; at += step) labels.push(write(at));
    return labels;
  };
  if (first > 0 && last > 0) return between(first, last, numberToLetters);
  const isPadded = (text: string): boolean => text.length > 1 && text.startsWith("0");
  const digits = isPadded(row.row) || isPadded(row.to) ? row.row.length : 1;
  return between(Number(row.row), Number(row.to), (at) => String(at).padStart(digits, "0"));
}

/** The names of a row's places; `null` is a place without a seat. */
function placesOf(tier: FileTier, section: string, label: string, seats: FileRow["seats"]): (string | null)[] {
  if (Array.isArray(seats)) return seats;
  if (seats === "every_column") {
    return (tier.columns ?? []).map((letter) => (letter === null ? null : `${section}-${label}${letter}`));
  }
  const places: (string | null)[] = [];
  const prefix = seats.prefix ?? `${section}-${label}-`;
  const aisles = new Set(seats.aisles_after ?? []);
  for (let at = 0; at < seats.count; at += 1) {
    const number = seats.first + at * (seats.step ?? 1);
    places.push(prefix + String(number));
    if (aisles.has(number)) places.push(null);
  }
  return places;
}

/** Thrown if the file and the grids of the bitmaps do not go together. */
export class PlanMismatch extends Error {}

interface Growing {
  rowOf: number[];
  placeOf: number[];
  bitRowOf: number[];
  names: string[];
  withheld: number[];
  rows: PlanRow[];
  sections: PlanSection[];
}

function addSection(growing: Growing, tier: number, file: FileTier, section: FileSection, name: string, bitRow: number): number {
  const withheld = new Set(file.not_for_sale ?? []);
  const index = growing.sections.length;
  const made: PlanSection = { tier, name, firstRow: growing.rows.length, rows: 0, first: growing.names.length, seats: 0 };
  let at = bitRow;
  for (const fileRow of section.rows) {
    for (const label of rowLabels(fileRow)) {
      const places = placesOf(file, name, label, fileRow.seats);
      const first = growing.names.length;
      places.forEach((seat, place) => {
        if (seat === null) return;
        growing.rowOf.push(growing.rows.length);
        growing.placeOf.push(place);
        growing.bitRowOf.push(at);
        growing.withheld.push(withheld.has(seat) ? 1 : 0);
        growing.names.push(seat);
      });
      growing.rows.push({ section: index, label, first, seats: growing.names.length - first, places: places.length });
      at += 1;
    }
  }
  made.rows = growing.rows.length - made.firstRow;
  made.seats = growing.names.length - made.first;
  growing.sections.push(made);
  return at;
}

/** Adds the seats of a tier; returns the rows of its bitmap. */
function addTier(growing: Growing, tier: number, file: FileTier): number {
  if (file.general_admission) return Math.ceil(file.general_admission / 64);
  let bitRow = 0;
  let isFirst = true;
  for (const section of file.sections ?? []) {
    for (const name of [section.section, ...(section.alike ?? [])]) {
      // A blank row lies between two sections of a tier with column letters.
      if (!isFirst && (file.columns ?? []).length > 0) bitRow += 1;
      isFirst = false;
      bitRow = addSection(growing, tier, file, section, name, bitRow);
    }
  }
  return bitRow;
}

/**
 * Reads the plan of a sale from its file and the grids of its tiers.
 *
 * Throws [`PlanMismatch`] if a tier's rows are not those of its grid.
 */
export function readPlan(file: FileForMap, grids: TierGrid[]): Plan {
  const growing: Growing = { rowOf: [], placeOf: [], bitRowOf: [], names: [], withheld: [], rows: [], sections: [] };
  const tiers: PlanTier[] = file.tiers.map((tier, index) => {
    const grid = grids.find((one) => one.tier === tier.tier);
    if (grid === undefined) throw new PlanMismatch(`tier ${tier.tier} has no grid`);
    const rows = addTier(growing, index, tier);
    if (rows !== grid.rows) throw new PlanMismatch(`tier ${tier.tier} has ${rows} rows, its grid ${grid.rows}`);
    return { id: tier.tier, name: tier.name, columns: tier.columns ?? [], rowBytes: grid.row_bytes, spots: tier.general_admission ?? 0 };
  });
  const seats = growing.names.length;
  const plan: Plan = {
    isTrain: (file.stops ?? []).length > 0,
    tiers,
    sections: growing.sections,
    rows: growing.rows,
    seats,
    rowOf: Uint32Array.from(growing.rowOf),
    placeOf: Uint16Array.from(growing.placeOf),
    bitOf: new Uint32Array(seats),
    withheld: Uint8Array.from(growing.withheld),
    names: growing.names,
  };
  for (let seat = 0; seat < seats; seat += 1) {
    const tier = tiers[tierOf(plan, seat)];
    plan.bitOf[seat] = (growing.bitRowOf[seat] ?? 0) * (tier?.rowBytes ?? 0) * 8 + (plan.placeOf[seat] ?? 0);
  }
  return plan;
}

/** The section of a seat. */
export function sectionOf(plan: Plan, seat: number): number {
  return plan.rows[plan.rowOf[seat] ?? 0]?.section ?? 0;
}

/** The tier of a seat. */
export function tierOf(plan: Plan, seat: number): number {
  return plan.sections[sectionOf(plan, seat)]?.tier ?? 0;
}

/** The label of the row of a seat. */
export function rowLabel(plan: Plan, seat: number): string {
  return plan.rows[plan.rowOf[seat] ?? 0]?.label ?? "";
}

/** The letter of the column of a seat; null if it has none. */
export const letterOf = (plan: Plan, seat: number): string | null => plan.tiers[tierOf(plan, seat)]?.columns[plan.placeOf[seat] ?? 0] ?? null;

/** What a seat is called within its row: its number or letter. */
export function shortName(plan: Plan, seat: number): string {
  return shortOf(plan.names[seat] ?? "", letterOf(plan, seat), plan.sections[sectionOf(plan, seat)]?.name ?? "", rowLabel(plan, seat));
}

/** The same, of a name in a row; `letter` is that of its column, where it has one. */
export function shortOf(name: string, letter: string | null, section: string, row: string): string {
  if (letter !== null && name.endsWith(letter)) return letter;
  const prefix = `${section}-${row}-`;
  if (name.length > prefix.length && name.startsWith(prefix)) return name.slice(prefix.length);
  const last = Math.max(name.lastIndexOf("-"), name.lastIndexOf(" "));
  return last > 0 && last < name.length - 1 ? name.slice(last + 1) : name;
}

/** The index of each seat by its name. */
export function indexByName(plan: Plan): Map<string, number> {
  return new Map(plan.names.map((name, seat) => [name, seat]));
}
