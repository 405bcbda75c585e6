/** What orders need to know of their sale: its title, and the names of its tiers and stops. */
import { useEffect, useState } from "preact/hooks";

import type { FileForMap } from "../map/plan.ts";
import { everyone, reply, type Schemas } from "../shared/api.ts";
import { placeOf, seatText, type Place } from "../shared/seat-place.ts";

/** Names in a sale. Until they are known, and if they never are, ids stand in their place. */
export interface Names {
  readonly title: string;
  /** True of a train; null while it is not known. */
  readonly isTrain: boolean | null;
  /** True of a sale that fills wallets: its tickets are money. */
  readonly isMoney: boolean;
  tier(id: string): string;
  stop(id: string): string;
  /** A seat by its section, row and number, or its coach and number. */
  seat(name: string): string;
  /** The same in parts; null while the layout is not known, and if the seat is not in it. */
  place(name: string): Place | null;
}

/** What names are taken from. */
export interface KnownSale {
  readonly title: string;
  readonly file: {
    readonly tiers: readonly { readonly tier: string; readonly name: string }[];
    readonly stops?: readonly { readonly stop: string; readonly name: string }[] | null;
    readonly merchant?: { readonly merchant?: string | null | undefined } | null;
  };
}

const kept = new Map<string, Promise<Schemas["SaleReply"]>>();

/** The sale; asked for once, and again after a failure. */
export function saleReply(sale: string): Promise<Schemas["SaleReply"]> {
  let asked = kept.get(sale);
  if (asked === undefined) {
    // The client's types of replies know no tuples.
    asked = reply(everyone.GET("/sales/{sale}", { params: { path: { sale } } })) as Promise<Schemas["SaleReply"]>;
    kept.set(sale, asked);
    asked.catch(() => kept.delete(sale));
  }
  return asked;
}

/** Names from a sale; from its id alone while there is no answer. */
export function namesOf(sale: string, known: KnownSale | null): Names {
  // The client's types of files know no layouts.
  const file = (known?.file ?? null) as FileForMap | null;
  return {
    title: known?.title ?? sale,
    isTrain: known === null ? null : (known.file.stops ?? []).length > 0,
    isMoney: known?.file.merchant?.merchant === "wallet",
    tier: (id) => known?.file.tiers.find(({ tier }) => tier === id)?.name ?? id,
    stop: (id) => known?.file.stops?.find(({ stop }) => stop === id)?.name ?? id,
    seat: (name) => seatText(file, name),
    place: (name) => (file === null ? null : placeOf(file, name)),
  };
}

/** The names of a sale, better ones as soon as they are there; `before` is what was known of it once. */
export function useNames(sale: string, before: KnownSale | null = null): Names {
  const [known, setKnown] = useState<Schemas["SaleReply"] | null>(null);
  useEffect(() => {
    let isOver = false;
    saleReply(sale).then((answer) => isOver || setKnown(answer), () => {});
    return () => {
      isOver = true;
    };
  }, [sale]);
  return namesOf(sale, known?.sale === sale ? known : before);
}
