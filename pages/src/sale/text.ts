/** The texts of a sale's page. */
import en from "../i18n/sale.en.json";
import zh from "../i18n/sale.zh.json";
import { texts } from "../shared/text.ts";

export const { t, tn } = texts(en, zh);
