/** Until when tickets may be given back, and for what fee, by category where they differ. */

/** The terms of a sale file, for all its tiers or one. */
export interface Terms {
  readonly until: string;
  readonly fee_percent?: number | null;
  readonly fee_minor?: number | null;
}

interface File {
  readonly refunds?: Terms | null;
  readonly tiers: readonly { readonly name: string; readonly refunds?: Terms | null }[];
}

/** Tiers that share their terms, by name; `terms` is null where nothing may be given back. */
export interface Shared {
  readonly tiers: readonly string[];
  readonly terms: Terms | null;
}

const sameness = (terms: Terms | null): string => JSON.stringify(terms === null ? null : [Date.parse(terms.until), terms.fee_percent ?? 0, terms.fee_minor ?? 0]);

/** The terms of all tiers, those that are the same together, in the order of the file. */
export function refundTerms({ refunds, tiers }: File): Shared[] {
  const groups = new Map<string, { tiers: string[]; terms: Terms | null }>();
  for (const tier of tiers) {
    const terms = tier.refunds ?? refunds ?? null;
    const key = sameness(terms);
    const group = groups.get(key) ?? { tiers: [], terms };
    group.tiers.push(tier.name);
    groups.set(key, group);
  }
  return [...groups.values()];
}
