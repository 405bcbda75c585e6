/** The texts of the page. */
import en from "../i18n/desk.en.json";
import zh from "../i18n/desk.zh.json";
import { texts } from "../shared/text.ts";

/** The texts of the page. */
export const { t, tn } = texts(en, zh);
