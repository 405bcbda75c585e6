/** The language of the page: `?lang=` in the address, else the browser's, else English. */

/** The languages that there are. */
export type Language = "en" | "zh";
/** Every language, with its own name for itself. */
export const LANGUAGES: readonly { readonly language: Language; readonly name: string; readonly tag: string }[] = [
  { language: "en", name: "English", tag: "en" },
  { language: "zh", name: "简体中文", tag: "zh-Hans" },
];

/** The language of an address, given what the browser prefers. */
export function chosenLanguage(search: string, preferred: readonly string[]): Language {
  const asked = new URLSearchParams(search).get("lang");
  if (asked === "en" || asked === "zh") {
    return asked;
  }
  const first = preferred.map((tag) => tag.toLowerCase().split("-")[0]).find((tag) => tag === "en" || tag === "zh");
  return first === "zh" ? "zh" : "en";
}

const inBrowser = typeof document !== "undefined";
/** The language of this page. */
export const language: Language = inBrowser ? chosenLanguage(location.search, navigator.languages) : "en";
/** The locale for Intl. */
export const locale = language === "zh" ? "zh-CN" : "en-GB";

/** An address on this site with the language of the page in it: every link is made by this. */
export function href(path: string, other: Language = language): string {
  const url = new URL(path, "https://this.site");
  url.searchParams.set("lang", other);
  return url.pathname + url.search + url.hash;
}

/** Goes to another page of this site. */
export const goTo = (path: string): void => location.assign(href(path));

if (inBrowser) {
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
}
