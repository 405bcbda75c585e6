/** Why an operator does something, as the API takes it. */

/** The most letters of a reason. */
export const MOST_REASON = 200;

/** A reason as it is sent: one line, no blanks around it. Empty if nothing was written; null if it is too long. */
export function reasonOf(text: string): string | null {
  const reason = text.trim().replace(/\s+/g, " ");
  return [...reason].length > MOST_REASON ? null : reason;
}
