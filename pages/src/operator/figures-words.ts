/** The texts of the figures, and the types of problems in words. */
import en from "../i18n/figures.en.json";
import zh from "../i18n/figures.zh.json";
import { texts } from "../shared/text.ts";

/** The texts. */
export const { t } = texts(en, zh);

const isReason = (key: string): key is `reason.${string}` & keyof typeof en => key in en;

/** A type of problem in words. One that is newer than the page has its title, in English. */
export function reasonText(reason: string, title: string): string {
  const key = `reason.${reason}`;
  return isReason(key) ? t(key) : title;
}
