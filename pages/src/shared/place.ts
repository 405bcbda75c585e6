/**
 * The place in a sale's waiting room, as joining answered it. It is kept in the browser, because it is no bearer
 * token: without signing in as the same buyer nobody can use it.
 */
import { browserStore, getJson, setJson, tabStore } from "./storage.ts";

/** A kept place. */
export interface KeptPlace {
  readonly sale: string;
  /** The place token. */
  readonly token: string;
  readonly group: string;
  readonly index: number;
  readonly window: "first" | "later";
  /** With it the leaf of the draw can be checked. */
  readonly nonce: string;
  /** The place, once it is drawn. */
  readonly place: number | null;
  /** When this browser first saw that it was due, by the server's clock: it has been waiting for its buyer since then or longer. */
  readonly dueAtMs?: number;
  /** When it was joined, by the server's clock. */
  readonly joinedAtMs: number;
  /** Whose it is, as the token says: another account that signs in here has another place. */
  readonly buyer?: string | null;
  /** Title of the sale, so that the waiting room need not load it. */
  readonly title?: string;
  /** Names of its tiers, in its order. */
  readonly tiers?: readonly string[];
}

const keyOf = (sale: string) => `onsale.place.${sale}`;

/** The place that is kept for a sale; null if there is none. */
export function keptPlace(sale: string): KeptPlace | null {
  const kept = getJson<KeptPlace>(browserStore, keyOf(sale)) ?? getJson<KeptPlace>(tabStore, keyOf(sale));
  return kept !== null && kept.sale === sale && typeof kept.token === "string" && Number.isInteger(kept.index) ? kept : null;
}

/** Whether a place is another account's than the one that is signed in, as far as both are known. */
export const isAnothers = (place: KeptPlace, signedIn: string | null): boolean => signedIn !== null && place.buyer != null && place.buyer !== signedIn;

/** Keeps a place; in the tab, if the browser keeps nothing for all of them. */
export function keepPlace(place: KeptPlace): void {
  if (!browserStore.set(keyOf(place.sale), JSON.stringify(place))) {
    setJson(tabStore, keyOf(place.sale), place);
  }
}

/** Forgets the place of a sale. */
export function forgetPlace(sale: string): void {
  browserStore.remove(keyOf(sale));
  tabStore.remove(keyOf(sale));
}
