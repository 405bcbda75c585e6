/** The stops that a part of a name finds. Pure. */
import type { Schemas } from "onsale-client";

import { folded, foldedWords } from "./fold.ts";

/** All stops of one name on a day. */
export type StopsOfName = Schemas["StopsOfName"];

/** A name with what it is found by. */
export interface Suggestion {
  /** The name: what the field holds once it is chosen, which finds the trains of each of its stops. */
  readonly name: string;
  /** The ids of its stops, unless one of them is the name. */
  readonly codes: readonly string[];
  /** Name and ids, folded. */
  readonly words: string;
}

/** The suggestions for what has been typed. */
export interface Suggested {
  /** At most {@link MOST}: those whose name begins so before those that have it inside. */
  readonly shown: readonly Suggestion[];
  /** How many others match. */
  readonly more: number;
}

/** Suggestions that are shown: what a phone has room for. */
export const MOST = 8;

/** The names of a day, ready to be searched. Pages of a list may end amid a name: its stops are put together. */
export function suggestionsOf(stops: readonly StopsOfName[]): readonly Suggestion[] {
  const byName = new Map<string, { name: string; ids: string[] }>();
  for (const { name, stops: ids } of stops) {
    const known = byName.get(name.toLowerCase());
    if (known === undefined) {
      byName.set(name.toLowerCase(), { name, ids: [...ids] });
    } else {
      known.ids.push(...ids);
    }
  }
  return [...byName.values()].map(({ name, ids }) => ({ name, codes: ids.includes(name) ? [] : ids, words: ` ${folded([name, ...ids].join(" "))}` }));
}

/** How well a name fits, best first: it is what was typed, or its id is; it begins so; a word of it does; it has it inside. */
function rank({ name, codes, words }: Suggestion, text: string): number {
  const all = folded(name);
  return all === text || codes.some((code) => folded(code) === text) ? 0 : all.startsWith(text) ? 1 : words.includes(` ${text}`) ? 2 : 3;
}

/** The names that have each word of what was typed, in any script; all of them for nothing. */
export function suggested(suggestions: readonly Suggestion[], typed: string): Suggested {
  const words = foldedWords(typed);
  const text = words.join(" ");
  const found = suggestions.filter((one) => words.every((word) => one.words.includes(word)));
  const ranked = found.map((one) => ({ one, rank: rank(one, text) })).sort((a, b) => a.rank - b.rank).map(({ one }) => one);
  return { shown: ranked.slice(0, MOST), more: Math.max(0, ranked.length - MOST) };
}
