/** The order in which people look for rows; files have them by desirability. */

import { lettersToNumber } from "./plan.ts";

/** Compares names as people do: numbers in them by their value. */
export const naturally = new Intl.Collator("en", { numeric: true }).compare;

/** The indices of rows by their labels: A to Z before AA, 2 before 10. Names such as “front” and “back” have no order but the file's. */
export function rowOrder(labels: readonly string[]): number[] {
  const all = [...labels.keys()];
  const at = (index: number): string => labels[index] ?? "";
  if (labels.every((label) => lettersToNumber(label) > 0)) return all.sort((one, other) => lettersToNumber(at(one)) - lettersToNumber(at(other)) || one - other);
  return labels.every((label) => /\d/.test(label)) ? all.sort((one, other) => naturally(at(one), at(other)) || one - other) : all;
}
