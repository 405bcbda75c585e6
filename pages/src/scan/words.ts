/** The texts of the page. */
import en from "../i18n/scan.en.json";
import zh from "../i18n/scan.zh.json";
import { texts } from "../shared/text.ts";

/** The texts of the page. */
export const { t, tn } = texts(en, zh);
