/** The texts of the room: its own only, so that the file stays small. */
import en from "../i18n/room.en.json";
import zh from "../i18n/room.zh.json";
import { number } from "../shared/format.ts";
import { language } from "../shared/language.ts";

export { number };

type Key = keyof typeof en;
const all: Readonly<Record<Key, string>> = language === "zh" ? zh : en;

/** A text with values in it. */
export const t = (key: Key, values: Readonly<Record<string, string | number>> = {}): string =>
  all[key].replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name];
    return value === undefined ? whole : typeof value === "number" ? number(value) : value;
  });
