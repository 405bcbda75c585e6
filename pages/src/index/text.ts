/** The texts of the storefront. */
import en from "../i18n/index.en.json";
import zh from "../i18n/index.zh.json";
import { texts } from "../shared/text.ts";

export const { t, tn } = texts(en, zh);
