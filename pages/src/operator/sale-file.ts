/** What a sale file says, before it is published. The API alone decides whether it is right. */
import { readPlan, rowLabels, type FileForMap, type FileRow, type FileTier, type Plan, type TierGrid } from "../map/plan.ts";

/** The largest file that the API takes, in bytes. */
export const MOST_FILE_BYTES = 5 * 1024 * 1024;
/** Bounds of the format: what is beyond is not counted here, and refused by the API. */
const MOST_PLACES = 1_000_000;
const MOST_PLACES_OF_ROW = 1_024;
const MOST_ROWS = 1_000_000;

/** A sale file as far as its summary goes. Everything may be missing or wrong. */
export interface SaleFile extends FileForMap {
  readonly sale: string;
  readonly title?: string;
  readonly currency?: string;
  readonly opens_at?: string;
  readonly closes_at?: string;
  readonly state?: string;
  readonly limit_per_buyer?: number;
  readonly pay_window_seconds?: number;
  readonly room?: unknown;
  readonly refunds?: { readonly until?: string; readonly fee_percent?: number; readonly fee_minor?: number };
  readonly map?: unknown;
  readonly challenges?: unknown;
  readonly event?: unknown;
  readonly runs_on?: unknown;
}

/** Thrown with why a text is no sale file. */
export class NotASaleFile extends Error {
  constructor(readonly reason: "json" | "sale", message: string) {
    super(message);
  }
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);

/** The company whose check a file asks for, which these pages cannot show; null if it asks for none. */
export function foreignChallenge({ challenges }: SaleFile): string | null {
  if (!isObject(challenges) || challenges["kind"] !== "siteverify") {
    return null;
  }
  const { siteverify } = challenges;
  return isObject(siteverify) && typeof siteverify["provider"] === "string" ? siteverify["provider"] : "siteverify";
}

/** Reads the text of a file. */
export function readSaleFile(text: string): SaleFile {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new NotASaleFile("json", error instanceof Error ? error.message : String(error));
  }
  const isOne = isObject(value) && typeof value["sale"] === "string" && value["sale"] !== "" && Array.isArray(value["tiers"]) && value["tiers"].every(isObject);
  if (!isOne) {
    throw new NotASaleFile("sale", "");
  }
  return value as unknown as SaleFile;
}

/** Labels of a range are made only if there are not too many of them. */
function rowsOf(row: FileRow): number | null {
  if (row.to === undefined || row.to === null) {
    return 1;
  }
  const ends = [row.row, row.to];
  if (ends.every((end) => /^[A-Z]{1,2}$/.test(end))) {
    return rowLabels(row).length;
  }
  const rows = Math.abs(Number(row.to) - Number(row.row)) + 1;
  return ends.every((end) => /^\d{1,9}$/.test(end)) && rows <= MOST_ROWS ? rows : null;
}

function seatsOfRow(tier: FileTier, row: FileRow): number | null {
  const { seats } = row;
  if (seats === "every_column") {
    return (tier.columns ?? []).filter((letter) => letter !== null).length;
  }
  if (Array.isArray(seats)) {
    return seats.filter((seat) => seat !== null).length;
  }
  return isObject(seats) && Number.isInteger(seats.count) && seats.count > 0 && seats.count <= MOST_PLACES_OF_ROW ? seats.count : null;
}

/** Places of a tier; null if they cannot be counted. */
export function placesOf(tier: FileTier): number | null {
  if (typeof tier.general_admission === "number") {
    return tier.general_admission;
  }
  let places = 0;
  for (const section of Array.isArray(tier.sections) ? tier.sections : []) {
    const alike = 1 + (Array.isArray(section.alike) ? section.alike.length : 0);
    for (const row of Array.isArray(section.rows) ? section.rows : []) {
      const [rows, seats] = [rowsOf(row), seatsOfRow(tier, row)];
      if (rows === null || seats === null || (places += rows * seats * alike) > MOST_PLACES) {
        return null;
      }
    }
  }
  const withheld = Array.isArray(tier.not_for_sale) ? tier.not_for_sale.length : 0;
  return Math.max(0, places - withheld);
}

/** The least and the most that a ticket of a tier costs, in minor units; null if no price is given. */
export function pricesOf(tier: FileTier): readonly [number, number] | null {
  const prices = typeof tier.price_minor === "number" ? [tier.price_minor] : (Array.isArray(tier.fares) ? tier.fares : []).map(({ price_minor }) => price_minor);
  const least = prices.reduce((one, other) => Math.min(one, other), Number.POSITIVE_INFINITY);
  const most = prices.reduce((one, other) => Math.max(one, other), 0);
  return Number.isFinite(least) ? [least, most] : null;
}

/** The grid of a tier, as publishing makes it. */
function gridOf(tier: FileTier): TierGrid {
  if (typeof tier.general_admission === "number") {
    return { tier: tier.tier, rows: Math.ceil(tier.general_admission / 64), row_bytes: 8, seats: tier.general_admission };
  }
  const sections = (tier.sections ?? []).flatMap((section) => [section, ...(section.alike ?? []).map(() => section)]);
  const rows = sections.reduce((sum, section) => sum + section.rows.reduce((all, row) => all + rowLabels(row).length, 0), 0);
  const blanks = (tier.columns ?? []).length > 0 ? Math.max(0, sections.length - 1) : 0;
  return { tier: tier.tier, rows: rows + blanks, row_bytes: 1, seats: placesOf(tier) ?? 0 };
}

/** The plan of a file; null if none can be made of it. Its bits are not those of availability. */
export function planOf(file: SaleFile): Plan | null {
  if (file.tiers.some((tier) => placesOf(tier) === null)) {
    return null;
  }
  try {
    return readPlan(file, file.tiers.map(gridOf));
  } catch {
    return null;
  }
}

/** A field that differs between two files, as texts; null is absent. */
export interface Change {
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** The most letters of a value that are shown. */
const MOST_SHOWN = 120;

const isEmpty = (value: unknown) => value === undefined || value === null;

/** A value as text whose fields have an order of their own. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) {
    return `[${value.map(canonical).join(",")}]`;
  }
  if (isObject(value)) {
    const fields = Object.keys(value).filter((key) => !isEmpty(value[key])).sort();
    return `{${fields.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}

function shown(value: unknown): string | null {
  if (isEmpty(value)) {
    return null;
  }
  const text = typeof value === "string" ? value : canonical(value);
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
}

const isTime = (value: unknown): value is string => typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value);
const isSame = (one: unknown, other: unknown) =>
  canonical(one) === canonical(other) || (isTime(one) && isTime(other) && Date.parse(one) === Date.parse(other));

/**
 * The fields in which a file differs from what is published. What a file leaves out is shown with its default once it
 * is published, so only fields that the new file has are compared, and those that it gives up.
 */
export function changesOf(before: object, after: object): Change[] {
  const [old, next] = [before as Readonly<Record<string, unknown>>, after as Readonly<Record<string, unknown>>];
  return Object.keys({ ...old, ...next }).filter((field) => field !== "tiers").flatMap((field): Change[] => {
    const [one, other] = [old[field], next[field]];
    if (isObject(one) && isObject(other)) {
      return changesOf(one, other).map((change) => ({ ...change, field: `${field}.${change.field}` }));
    }
    const isDefault = isEmpty(other) && (typeof one === "number" || (typeof one === "boolean" && field !== "sold_out") || (field === "state" && one === "open") || field === "attendees" || field === "gate" || field === "limits");
    return isDefault || isSame(one, other) || (isEmpty(one) && isEmpty(other)) ? [] : [{ field, before: shown(one), after: shown(other) }];
  });
}

/** How the names and prices of tiers change. */
export function tierChanges(before: readonly FileTier[], after: readonly FileTier[]): Change[] {
  return after.flatMap((tier): Change[] => {
    const old = before.find((one) => one.tier === tier.tier);
    const fields = ["name", "price_minor", "fares", "refunds"] as const;
    if (old === undefined) {
      return [{ field: tier.tier, before: null, after: shown(tier.name) }];
    }
    const [one, other] = [old, tier].map((of) => Object.fromEntries(fields.map((field) => [field, (of as unknown as Record<string, unknown>)[field]])));
    return changesOf(one ?? {}, other ?? {}).map((change) => ({ ...change, field: `${tier.tier}.${change.field}` }));
  });
}
