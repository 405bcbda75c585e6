/**
 * Where tickets are kept that were seen, so that they are shown without a network: a cache of the browser, which the pages
 * alone read and write. Every page can forget them, because every page can sign out.
 */

const CACHE = "onsale-kept-tickets";

/** The address that the tickets of an order are kept by: nothing is ever asked for there. */
export const keptAddress = (buyer: string, order: string): string => `/kept-tickets/${encodeURIComponent(buyer)}/${encodeURIComponent(order)}`;
/** The order of such an address; null of another buyer's. With no buyer, whoever's it is. */
export function orderOfAddress(address: string, buyer: string | null): string | null {
  const [, , of = "", order = ""] = new URL(address, "https://this.site").pathname.split("/");
  return buyer === null || of === encodeURIComponent(buyer) ? decodeURIComponent(order) : null;
}

/** The cache; null where the browser has none, or forbids it. */
export async function openKept(): Promise<Cache | null> {
  try {
    return await caches.open(CACHE);
  } catch {
    return null;
  }
}

/** Forgets all tickets that are kept. */
export async function forgetKept(): Promise<void> {
  try {
    await caches.delete(CACHE);
  } catch {
    // Where there are no caches nothing is kept.
  }
}

/** Forgets the tickets of all buyers but one. */
export async function forgetKeptOfOthers(buyer: string): Promise<void> {
  const kept = await openKept();
  for (const request of (await kept?.keys()) ?? []) {
    if (orderOfAddress(request.url, buyer) === null) await kept?.delete(request);
  }
}
