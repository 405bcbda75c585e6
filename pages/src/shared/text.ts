/** Texts by key, in the language of the page. */
import sharedEn from "../i18n/shared.en.json";
import sharedZh from "../i18n/shared.zh.json";
import { language, locale, type Language } from "./language.ts";
import { number } from "./format.ts";

/** What `{name}` in a text becomes. A number is written as the language writes numbers. */
export type Values = Readonly<Record<string, string | number>>;

type SharedKey = keyof typeof sharedEn;
/** Keys that exist with `.one` and `.other` behind them. */
type PluralOf<Key extends string> = Key extends `${infer Stem}.other` ? Stem : never;

/** The texts of a page: its own and the shared ones. */
export interface Texts<Key extends string> {
  /** The text of a key. */
  t(key: Key, values?: Values): string;
  /** The text of `key.one` or `key.other`, by a number, which is `{count}` in it. */
  tn(key: PluralOf<Key>, count: number, values?: Values): string;
}

/** Puts values into a text. */
export function filled(text: string, values: Values = {}): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name];
    return value === undefined ? whole : typeof value === "number" ? number(value) : value;
  });
}

const plurals = new Intl.PluralRules(locale);

/** The texts of a page, from its two files `src/i18n/<page>.<language>.json`. */
export function texts<En extends Readonly<Record<string, string>>>(
  en: En, zh: Readonly<Record<keyof En, string>>, of: Language = language,
): Texts<(keyof En & string) | SharedKey> {
  const all: Readonly<Record<string, string>> = of === "zh" ? { ...sharedZh, ...zh } : { ...sharedEn, ...en };
  const t = (key: string, values?: Values) => filled(all[key] ?? key, values);
  return {
    t,
    tn: (key, count, values) => {
      const form = `${key}.${plurals.select(count)}`;
      return t(form in all ? form : `${key}.other`, { count, ...values });
    },
  };
}

/** The shared texts alone. */
export const shared = texts({}, {});
