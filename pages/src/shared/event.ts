/** When and where an event is, in words. Pure: times are arguments, and are told by the clocks of the venue, never the reader's. */
import type { Schemas } from "onsale-client";

import en from "../i18n/event.en.json";
import zh from "../i18n/event.zh.json";
import { language, type Language } from "./language.ts";
import { texts } from "./text.ts";

/** When and where an event is. */
export type EventFacts = Schemas["EventFacts"];
/** What people want to know of it besides. */
export type About = Schemas["EventAbout"];
/** A text for all, or one for each language. */
export type TextByLanguage = string | Readonly<Record<string, string>>;
/** The kinds of events, in the order in which they are offered. */
export const CATEGORIES = ["concert", "theatre", "sport", "festival", "comedy", "family", "exhibition", "talk", "party", "other"] as const;

/** The texts of events, in both languages. */
const WORDS = { en: texts(en, zh, "en"), zh: texts(en, zh, "zh") } as const;
/** The texts of events. */
export const eventWords = WORDS[language];
const LOCALES: Readonly<Record<Language, string>> = { en: "en-GB", zh: "zh-CN" };

const formats = new Map<string, Intl.DateTimeFormat | null>();
/** A format in a time zone; null if this browser does not know the zone. */
function formatOf(of: Language, zone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat | null {
  const key = JSON.stringify([of, zone, options]);
  let format = formats.get(key);
  if (format === undefined) {
    try {
      format = new Intl.DateTimeFormat(LOCALES[of], { ...options, timeZone: zone });
    } catch {
      format = null;
    }
    formats.set(key, format);
  }
  return format;
}

/** The zone, if this browser knows it; else UTC, which {@link zoneText} then says. */
const usable = (zone: string | null | undefined): string => (zone != null && zone !== "" && formatOf("en", zone, {}) !== null ? zone : "UTC");

const DAY = { weekday: "long", day: "numeric", month: "long", year: "numeric" } as const;
const SHORT_DAY = { weekday: "short", day: "numeric", month: "short", year: "numeric" } as const;
const DAY_OF_YEAR = { weekday: "short", day: "numeric", month: "short" } as const;
const TIME = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;

/** A moment; null if it is none. */
function moment(at: string | null | undefined): Date | null {
  const date = new Date(at ?? Number.NaN);
  return Number.isNaN(date.getTime()) ? null : date;
}
const written = (date: Date, zone: string | null | undefined, options: Intl.DateTimeFormatOptions, of: Language): string =>
  // Browsers do not agree on whether a comma follows the day of the week.
  (formatOf(of, usable(zone), options)?.format(date) ?? "").replace(/^(\p{L}+), /u, "$1 ");

/** The name of a zone at a moment: “Vienna time, CET”; of UTC, and of one that is not known here, UTC. */
export function zoneText(at: string, zone: string | null | undefined, of: Language = language): string {
  const { t } = WORDS[of];
  const date = moment(at);
  if (zone == null || zone === "" || date === null) return "UTC";
  if (usable(zone) !== zone) return t("zone.unknown", { zone });
  if (/^(?:Etc\/)?(?:UTC|UCT|GMT|Zulu|Universal|Greenwich)$/.test(zone)) return "UTC";
  const name = (timeZoneName: "short" | "long") => formatOf(of, zone, { timeZoneName })?.formatToParts(date).find(({ type }) => type === "timeZoneName")?.value ?? "UTC";
  const [, city] = /^(?!Etc\/)[^/]+\/(?:.*\/)?([^/]+)$/.exec(zone) ?? [];
  const short = name("short");
  // No browser has the names of cities in Chinese.
  if (of === "en" && city !== undefined) return t("zone.city", { city: city.replaceAll("_", " "), short });
  return name("long") === short ? short : t("zone.long", { long: name("long"), short });
}

/** A moment in full: “Saturday 21 November 2026, 20:00 (Vienna time, CET)”; null if it is none. */
export function whenText(at: string | null | undefined, zone: string | null | undefined, of: Language = language): string | null {
  const date = moment(at);
  return date === null || at == null ? null
    : WORDS[of].t("when", { day: written(date, zone, DAY, of), time: written(date, zone, TIME, of), zone: zoneText(at, zone, of) });
}

/** The same in short, for lists: “Sat 21 Nov 2026, 20:00”. A zone that is not known here is said even so. */
export function shortWhenText(at: string | null | undefined, zone: string | null | undefined, of: Language = language): string | null {
  const date = moment(at);
  if (date === null || at == null) return null;
  const values = { day: written(date, zone, SHORT_DAY, of), time: written(date, zone, TIME, of) };
  return usable(zone) === zone ? WORDS[of].t("when.short", values) : WORDS[of].t("when", { ...values, zone: zoneText(at, zone, of) });
}

/**
 * A moment beside another one: its time alone on the same day, else its day too; and the zone where the clocks have been
 * changed between the two.
 */
export function besideText(at: string | null | undefined, beside: string | null | undefined, zone: string | null | undefined, of: Language = language): string | null {
  const date = moment(at);
  if (date === null || at == null) return null;
  const time = written(date, zone, TIME, of);
  const isSameDay = beside != null && localDay(at, zone) === localDay(beside, zone);
  const isSameZone = beside != null && zoneText(at, zone, of) === zoneText(beside, zone, of);
  const values = { day: written(date, zone, DAY, of), time, zone: zoneText(at, zone, of) };
  return isSameDay && isSameZone ? time : WORDS[of].t(isSameZone ? "when.no-zone" : "when", values);
}

/** The day of a moment by the clocks of a zone, as YYYY-MM-DD; null if it is no moment. */
export function localDay(at: string | null | undefined, zone: string | null | undefined): string | null {
  const date = moment(at);
  return date === null ? null : localOf(date.getTime(), zone).slice(0, 10);
}

/** The month of a moment, in words. */
export function monthText(at: string | null | undefined, zone: string | null | undefined, of: Language = language): string {
  const date = moment(at);
  return date === null ? "" : written(date, zone, { month: "long" }, of);
}

/** A moment by the clocks of a zone: YYYY-MM-DDTHH:MM. */
function localOf(ms: number, zone: string | null | undefined): string {
  const parts = new Map(formatOf("en", usable(zone), { year: "numeric", month: "2-digit", day: "2-digit", ...TIME })?.formatToParts(ms).map(({ type, value }) => [type, value]));
  return `${(parts.get("year") ?? "").padStart(4, "0")}-${parts.get("month")}-${parts.get("day")}T${parts.get("hour")}:${parts.get("minute")}`;
}

/** The name of a country; its two letters where the browser has none. */
function countryText(code: string, of: Language): string {
  try {
    return new Intl.DisplayNames([LOCALES[of]], { type: "region" }).of(code) ?? code;
  } catch {
    return code;
  }
}

/** Where it is: “Lakeside Stadium, Vienna, Austria”; null if that is not known. */
export function whereText(venue: EventFacts["venue"], withCountry = false, of: Language = language): string | null {
  if (venue == null) return null;
  const parts = [venue.name, venue.city, withCountry && venue.country != null ? countryText(venue.country, of) : null].filter((part) => part != null && part !== "");
  return parts.length === 0 ? null : parts.reduce((one, two) => WORDS[of].t("where", { one: one ?? "", two: two ?? "" })) ?? null;
}

/** A text in the language of the page, else in English, else in its first one; null if there is none. */
export function textOf(text: TextByLanguage | null | undefined, of: Language = language): string | null {
  if (text == null || typeof text === "string") return text || null;
  const tags = Object.keys(text);
  const inLanguage = (code: string) => {
    const these = tags.filter((tag) => tag.toLowerCase().split(/[-_]/)[0] === code);
    // Of Chinese the pages have the simplified one.
    return these.find((tag) => tag.toLowerCase() === code) ?? these.find((tag) => !/hant|-(?:tw|hk|mo)\b/i.test(tag)) ?? these[0];
  };
  const tag = inLanguage(of) ?? inLanguage("en") ?? tags[0];
  return (tag === undefined ? null : text[tag]) || null;
}

/** The place on a map; null if it is not known. */
export function mapLink({ latitude, longitude }: Pick<About, "latitude" | "longitude">): string | null {
  if (typeof latitude !== "number" || typeof longitude !== "number" || !(Math.abs(latitude) <= 90) || !(Math.abs(longitude) <= 180)) return null;
  const [north, east] = [latitude, longitude].map((degrees) => String(Number(degrees.toFixed(6))));
  return `https://www.openstreetmap.org/?mlat=${north}&mlon=${east}#map=17/${north}/${east}`;
}

/** Where a picture of an event is. */
export const pictureAddress = (sha256: string): string => `/api/pictures/${encodeURIComponent(sha256)}`;

/** An address that leads elsewhere, if it is safe to follow: only https. */
export function safeLink(url: unknown): string | null {
  try {
    const address = new URL(String(url));
    return address.protocol === "https:" && address.username === "" && address.password === "" ? address.href : null;
  } catch {
    return null;
  }
}

/** A minute by the clocks of a stop. */
export interface StopTime {
  /** YYYY-MM-DD; null where the file does not say on which day the train sets out. */
  readonly day: string | null;
  /** HH:MM, below 24:00. */
  readonly time: string;
  readonly zone: string | null;
}

/** What of a sale's file says when a train is where. */
export interface Timetable {
  readonly runs_on?: string | null;
  readonly stops?: readonly Schemas["Stop"][] | null;
  readonly event?: Pick<EventFacts, "time_zone"> | null;
}

/** A time of a stop, which may be beyond 24:00, as a day and a time; null if it is none. */
export function stopTime(file: Timetable, stop: string, which: "arrives" | "departs"): StopTime | null {
  const found = file.stops?.find((one) => one.stop === stop);
  const [, hours, minutes] = /^(\d{1,3}):(\d{2})$/.exec(found?.[which] ?? "") ?? [];
  if (hours === undefined || minutes === undefined) return null;
  const day = moment(`${file.runs_on ?? ""}T00:00:00Z`);
  day?.setUTCDate(day.getUTCDate() + Math.floor(Number(hours) / 24));
  return {
    day: day?.toISOString().slice(0, 10) ?? null, time: `${String(Number(hours) % 24).padStart(2, "0")}:${minutes}`,
    zone: found?.time_zone ?? file.event?.time_zone ?? null,
  };
}

/** The moment of a time by the clocks of its stop; null without a day or a zone that is known here. */
export function instantOf({ day, time, zone }: StopTime): number | null {
  const asUtc = Date.parse(`${day ?? ""}T${time}:00Z`);
  if (Number.isNaN(asUtc) || zone === null || usable(zone) !== zone) return null;
  const aheadMs = (ms: number) => Date.parse(`${localOf(ms, zone)}:00Z`) - ms;
  // At first by the offset of that hour in UTC: the clocks may be changed between the two.
  return asUtc - aheadMs(asUtc - aheadMs(asUtc));
}

/** True once a train has left a stop by the server's clock, as far as its file says when that is: then no journey from there is sold. */
export function hasLeft(file: Timetable, stop: string, nowMs: number): boolean {
  const index = file.stops?.findIndex((one) => one.stop === stop) ?? -1;
  // A stop without a time is left when the one before it is.
  const times = file.stops?.slice(0, index + 1).map((one) => stopTime(file, one.stop, "departs") ?? stopTime(file, one.stop, "arrives"));
  const last = times?.filter((time) => time !== null).at(-1);
  const leavesMs = last === undefined ? null : instantOf(last);
  return leavesMs !== null && leavesMs <= nowMs;
}

/** A journey as it is told. */
export interface JourneyText {
  readonly departs: string | null;
  readonly arrives: string | null;
}

/**
 * When a train leaves and arrives, each by the clock of its stop: with the day of departure, that of arrival if it is another
 * one, and the zone: of both stops where they do not have the same, else in full once.
 */
export function journeyText(file: Timetable, from: string, to: string, style: "full" | "short" = "full", of: Language = language): JourneyText {
  const [leaves, comes] = [stopTime(file, from, "departs"), stopTime(file, to, "arrives")];
  const hasOneZone = leaves === null || comes === null || leaves.zone === comes.zone;
  const text = (at: StopTime, withDay: boolean, isFirst: boolean): string => {
    const day = at.day === null || !withDay ? null : written(new Date(`${at.day}T00:00:00Z`), "UTC", style === "full" ? DAY : SHORT_DAY, of);
    const zone = at.zone === null || (hasOneZone && !(isFirst && style === "full")) ? null : zoneText(new Date(instantOf(at) ?? Date.now()).toISOString(), at.zone, of);
    const { t } = WORDS[of];
    return day === null ? (zone === null ? at.time : `${at.time} (${zone})`) : t(zone === null ? "when.no-zone" : "when", { day, time: at.time, zone: zone ?? "" });
  };
  return {
    departs: leaves === null ? null : text(leaves, true, true),
    arrives: comes === null ? null : text(comes, leaves === null || comes.day !== leaves.day, leaves === null),
  };
}

/** The time of a stop, to choose it by: when the train leaves it, or at the end arrives; with its day, if that is not the first one. */
export function stopOptionText(file: Timetable, stop: Pick<Schemas["Stop"], "stop" | "name">, which: "arrives" | "departs", of: Language = language): string {
  const at = stopTime(file, stop.stop, which);
  if (at === null) return stop.name;
  const { t } = WORDS[of];
  const isLater = at.day !== null && at.day !== file.runs_on;
  const time = isLater ? t("when.no-zone", { day: written(new Date(`${at.day}T00:00:00Z`), "UTC", DAY_OF_YEAR, of), time: at.time }) : at.time;
  return t("stop", { name: stop.name, time });
}

/** What a number that may be a document's is shown as: its last four characters; names stay. */
export function maskedName(name: string): string {
  const masked = (text: string) => {
    const all = [...text];
    const lettered = all.filter((one) => /[\p{L}\p{N}]/u.test(one)).length;
    let seen = 0;
    return all.map((one) => (/[\p{L}\p{N}]/u.test(one) && (seen += 1) <= lettered - 4 ? "•" : one)).join("");
  };
  return name
    .replace(/[A-Za-z\p{Nd}]{6,}/gu, (word) => ((word.match(/\p{Nd}/gu)?.length ?? 0) >= 5 ? masked(word) : word))
    .replace(/\p{Nd}(?:[ -]?\p{Nd}){6,}[Xx]?/gu, masked);
}
