/** What the operator of a sale says to everybody who looks at it. */
import { eventWords, textOf, type TextByLanguage } from "./event.ts";

/** The notice of a sale, in the language of the page; nothing if there is none. */
export function SaleNotice({ notice }: { readonly notice: TextByLanguage | null | undefined }) {
  const text = textOf(notice);
  return text === null ? null : <p class="notice" role="status">{eventWords.t("notice", { notice: text })}</p>;
}
