/** Money, numbers and times, as the language of the page writes them. */
import { exponentOf } from "onsale-client";

import { locale } from "./language.ts";

const numbers = new Intl.NumberFormat(locale);
const currencies = new Map<string, Intl.NumberFormat>();

/** A number. */
export const number = (value: number): string => numbers.format(value);

/**
 * An amount of minor units, such as 117000 CNY as ¥1,170.00. What a minor unit is, ISO 4217 says; Intl only knows how many
 * digits people write, and a whole amount has no more: 129900 HUF are 1,299 Ft.
 */
export function money(minor: number, currency: string): string {
  const exponent = exponentOf(currency);
  const written = digitsWritten(currency);
  const digits = minor % 10 ** (exponent - Math.min(written, exponent)) === 0 ? Math.min(written, exponent) : exponent;
  const key = `${currency} ${digits}`;
  let format = currencies.get(key);
  if (format === undefined) {
    format = new Intl.NumberFormat(locale, { style: "currency", currency, minimumFractionDigits: digits, maximumFractionDigits: digits });
    currencies.set(key, format);
  }
  return format.format(minor / 10 ** exponent);
}

const digitsWritten = (currency: string): number => new Intl.NumberFormat(locale, { style: "currency", currency }).resolvedOptions().maximumFractionDigits ?? 2;

const moments = new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "short" });
const shortMoments = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
const clockTimes = new Intl.DateTimeFormat(locale, { timeStyle: "medium" });
const days = new Intl.DateTimeFormat(locale, { dateStyle: "full" });

const formatted = (format: Intl.DateTimeFormat, at: string | number) => {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? String(at) : format.format(date);
};
/** A time with its date in full, in the reader's time zone. */
export const dateTime = (at: string | number): string => formatted(moments, at);
/** A time with its date in short. */
export const shortDateTime = (at: string | number): string => formatted(shortMoments, at);
/** A time of the day with seconds. */
export const clockTime = (at: string | number): string => formatted(clockTimes, at);
/** A day in full. */
export const day = (at: string | number): string => formatted(days, at);

/** Hours from which on a countdown says days. */
const DAYS_FROM_HOURS = 48;

/** What is left of a time in digits, such as 1:02:03 or 02:03, or in whole days; never below zero. */
export function countdown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  if (seconds >= DAYS_FROM_HOURS * 3600) {
    return new Intl.NumberFormat(locale, { style: "unit", unit: "day", unitDisplay: "long" }).format(Math.floor(seconds / 86_400));
  }
  const two = (value: number) => String(value).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  const rest = `${two(Math.floor((seconds % 3600) / 60))}:${two(seconds % 60)}`;
  return hours > 0 ? `${hours}:${rest}` : rest;
}

const UNITS = [["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]] as const;

/** A duration in words by its two largest units, such as "3 days 2 hours". */
export function duration(ms: number): string {
  let seconds = Math.max(0, Math.round(ms / 1000));
  const parts: string[] = [];
  for (const [unit, length] of UNITS) {
    const count = Math.floor(seconds / length);
    if (count > 0 || (unit === "second" && parts.length === 0)) {
      parts.push(new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "long" }).format(count));
      seconds -= count * length;
    }
    if (parts.length === 2 || (parts.length === 1 && count === 0)) {
      break;
    }
  }
  return parts.join(" ");
}
