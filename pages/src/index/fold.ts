/** Texts as searches compare them. Pure. */

/** Letters that Unicode does not take apart, as people type them who have no such key. */
const LETTERS: Readonly<Record<string, string>> = {
  ł: "l", ø: "o", đ: "d", ħ: "h", ŧ: "t", ı: "i", ß: "ss", æ: "ae", œ: "oe", þ: "th", ð: "d", ς: "σ",
};
const LETTER = new RegExp(`[${Object.keys(LETTERS).join("")}]`, "gu");

/** A text without case, width and accents, so that "Théâtre" is found by "theatre", and "Łódź" by "lodz". */
export const folded = (text: string): string =>
  text.normalize("NFKD").replace(/\p{Mn}/gu, "").toLowerCase().replace(LETTER, (letter) => LETTERS[letter] ?? letter);

/** The words of a text, folded. */
export const foldedWords = (text: string): readonly string[] => folded(text).split(/\s+/).filter((word) => word !== "");
