/** "Check my place": what was published of the draw, made again here, and whether it leads to the same. */
import type { KeptPlace } from "../shared/place.ts";
import { shuffled } from "./shuffle.ts";
import { CHUNK_LEAVES, leafOf, rootByPath, rootOf } from "./tree.ts";

/** A window in which an index was drawn. */
export interface Window {
  readonly first: number;
  readonly end: number;
  readonly seed: string;
  readonly record: number;
}

/** What a check found. A null is something that could not be checked here. */
export interface Proof {
  readonly window: Window;
  /** The place that the seed makes of the index. */
  readonly place: number | null;
  /** The leaf that is published at the index; null in a later window, which has none. */
  readonly leaf: string | null;
  /** Whether it is the leaf of this buyer and nonce. */
  readonly isOwn: boolean | null;
  /** The root that the published leaves lead to. */
  readonly root: string | null;
  /** Whether it is the root that was shown before the draw. */
  readonly isSeen: boolean | null;
}

/** Gets JSON of an address below the sale's room. */
export type Get = (path: string) => Promise<unknown>;

/** The place that a window makes of an index; null if the index is not in it. */
export async function placeIn(window: Window, index: number): Promise<number | null> {
  const place = await shuffled(window.seed, window.end - window.first, index - window.first);
  return place === null ? null : window.first + place;
}

/** Checks a place. `buyer` is who is signed in in this tab, `seenRoot` the root that this browser was shown. */
export async function check(get: Get, kept: KeptPlace, buyer: string | null, seenRoot: string | null): Promise<Proof> {
  const window = (await get(`windows/${kept.group}/${kept.index}`)) as Window;
  const place = await placeIn(window, kept.index);
  if (window.first !== 0 || kept.window === "later") {
    return { window, place, leaf: null, isOwn: null, root: null, isSeen: null };
  }
  const chunk = Math.floor(kept.index / CHUNK_LEAVES);
  const { leaves, path } = (await get(`leaves/${kept.group}/${chunk}`)) as { leaves: string[]; path: string[] };
  const leaf = leaves[kept.index % CHUNK_LEAVES] ?? null;
  const root = await rootByPath(await rootOf(leaves), chunk, Math.ceil(window.end / CHUNK_LEAVES), path);
  const own = buyer === null ? null : await leafOf(kept.sale, kept.group, kept.index, buyer, kept.nonce);
  return { window, place, leaf, isOwn: own === null ? null : own === leaf, root, isSeen: seenRoot === null ? null : seenRoot === root };
}
