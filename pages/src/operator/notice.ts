/** The notice of a sale as its operator writes it: once, or in each language of the pages. */
import { LANGUAGES, type Language } from "../shared/language.ts";
import type { TextByLanguage } from "../shared/event.ts";

/** A text in each language of the pages; empty where there is none. */
export type NoticeTexts = Readonly<Record<Language, string>>;

/** The most characters of a notice, in each language. */
export const MOST_NOTICE_CHARACTERS = 300;

/** A notice by language, as it is written: one for all languages stands in each. */
export function noticeTexts(notice: TextByLanguage | null | undefined): NoticeTexts {
  const of = (language: Language): string => {
    if (notice == null || typeof notice === "string") return notice ?? "";
    const tags = Object.keys(notice);
    const tag = tags.find((one) => one.toLowerCase() === language) ?? tags.find((one) => one.toLowerCase().split(/[-_]/)[0] === language);
    return tag === undefined ? "" : (notice[tag] ?? "");
  };
  return { en: of("en"), zh: of("zh") };
}

/** The notice that is sent; null if it is in no language, or too long, or has characters that are no text. */
export function noticeOf(texts: NoticeTexts): TextByLanguage | null {
  const given = LANGUAGES.map(({ language }) => [language, texts[language].trim()] as const).filter(([, text]) => text !== "");
  const isGood = given.length > 0 && given.every(([, text]) => [...text].length <= MOST_NOTICE_CHARACTERS && !/\p{Cc}/u.test(text));
  return isGood ? Object.fromEntries(given) : null;
}
