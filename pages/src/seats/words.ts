/** The texts of the seats page. */
import en from "../i18n/seats.en.json";
import zh from "../i18n/seats.zh.json";
import { texts } from "../shared/text.ts";

/** Texts by key. */
export const words = texts(en, zh);
