/** Days and times of trains. Pure: time is an argument. */
import type { Schemas } from "onsale-client";

/** A train that sells the journey. */
export type Train = Schemas["TrainReply"];

/** A search for trains. */
export interface Journey {
  /** YYYY-MM-DD at the first stop. */
  readonly date: string;
  /** A stop, by name or id. */
  readonly from: string;
  readonly to: string;
}

/** The day of a moment in the reader's time zone, YYYY-MM-DD. */
export function dayOf(ms: number): string {
  const date = new Date(ms);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** A search as it is sent: without the blanks around a name. */
export const asked = ({ date, from, to }: Journey): Journey => ({ date, from: from.normalize("NFC").trim(), to: to.normalize("NFC").trim() });

/**
 * A time by the clocks of the railway, as a language writes it. It has no offset: it is written as it is, whatever the
 * reader's time zone.
 */
export function railwayTime(time: string, locale: string): string {
  const date = new Date(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$/.test(time) ? `${time}:00Z` : Number.NaN);
  const format = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" });
  return Number.isNaN(date.getTime()) ? time : format.format(date);
}

/** A time by the clocks of a stop as a moment that is written so by the clocks of UTC, which is no zone of its own here. */
export const asUtc = (time: string | null | undefined): string | null => (time == null ? null : `${time}:00Z`);

/** The query by which the pages of a sale know the journey of a train: by the ids of its stops. */
export const journeyQuery = ({ from, to }: Pick<Train, "from" | "to">): string => new URLSearchParams({ from: from.stop, to: to.stop }).toString();

/** How a tier is on this train: how many seats are left, sold out, or not known at the moment. */
export function leftOf({ available }: Train["tiers"][number]): "left" | "gone" | "unknown" {
  return available === undefined ? "unknown" : available > 0 ? "left" : "gone";
}
