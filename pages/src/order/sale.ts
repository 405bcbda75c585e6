/** What orders need to know of their sale: its title, and the names of its tiers and stops. */
import { useEffect, useState } from "preact/hooks";

import type { FileForMap } from "../map/plan.ts";
import { everyone, reply, type Schemas } from "../shared/api.ts";
import type { EventFacts, TextByLanguage, Timetable } from "../shared/event.ts";
import { placeOf, placeText, type Place } from "../shared/seat-place.ts";

/** Names in a sale. Until they are known, and if they never are, ids stand in their place. */
export interface Names {
  readonly title: string;
  /** True of a train; null while it is not known. */
  readonly isTrain: boolean | null;
  /** True of a sale that fills wallets: its tickets are money. */
  readonly isMoney: boolean;
  /** When and where it is; null of a train, and if nobody has said so. */
  readonly event: EventFacts | null;
  /** When the train is where; null of all else. */
  readonly timetable: Timetable | null;
  /** What its operator says to everybody; null if nothing. */
  readonly notice: TextByLanguage | null;
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
  readonly event?: EventFacts | null;
  readonly file: {
    readonly tiers: readonly { readonly tier: string; readonly name: string }[];
    readonly stops?: readonly Schemas["Stop"][] | null;
    readonly merchant?: { readonly merchant?: string | null | undefined } | null;
    readonly runs_on?: string | null;
    readonly event?: EventFacts | null;
    readonly notice?: TextByLanguage | null;
  };
  /** Where some of its seats are, in place of its layout. */
  readonly places?: readonly (readonly [seat: string, place: Place])[];
  /** Its postal address, where it is kept without the document of the event. */
  readonly address?: TextByLanguage | null;
}

const kept = new Map<string, Promise<Schemas["SaleReply"]>>();
/** The answers that are there. */
const answered = new Map<string, Schemas["SaleReply"]>();
/** Milliseconds that a page waits for names, and the like, before it is shown without. */
const MOST_MS = 4_000;

/** The sale; asked for once, and again after a failure. */
export function saleReply(sale: string): Promise<Schemas["SaleReply"]> {
  let asked = kept.get(sale);
  if (asked === undefined) {
    // The client's types of replies know no tuples.
    asked = reply(everyone.GET("/sales/{sale}", { params: { path: { sale } } })) as Promise<Schemas["SaleReply"]>;
    kept.set(sale, asked);
    asked.then((answer) => answered.set(sale, answer), () => kept.delete(sale));
  }
  return asked;
}

const isTrain = ({ file }: KnownSale): boolean => (file.stops ?? []).length > 0;
/** The facts of a sale's event; null if nobody has said any. */
export const eventOf = ({ event, file }: KnownSale): EventFacts | null => event ?? file.event ?? null;

/** Names from a sale; from its id alone while there is no answer. */
export function namesOf(sale: string, known: KnownSale | null): Names {
  // The client's types of files know no layouts.
  const file = (known?.file ?? null) as FileForMap | null;
  const places = known?.places === undefined ? null : new Map(known.places);
  const place = (name: string) => (file === null ? null : places !== null ? (places.get(name) ?? null) : placeOf(file, name));
  return {
    title: known?.title ?? sale,
    isTrain: known === null ? null : isTrain(known),
    isMoney: known?.file.merchant?.merchant === "wallet",
    event: known === null || isTrain(known) ? null : eventOf(known),
    timetable: known !== null && isTrain(known) ? known.file : null,
    notice: known?.file.notice ?? null,
    tier: (id) => known?.file.tiers.find(({ tier }) => tier === id)?.name ?? id,
    stop: (id) => known?.file.stops?.find(({ stop }) => stop === id)?.name ?? id,
    seat: (name) => {
      const found = place(name);
      return found === null ? name : placeText(found);
    },
    place,
  };
}

/** Waits for what a page can be shown without, though not for ever. */
export async function beforeLong(awaited: Promise<unknown>, mostMs = MOST_MS): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, mostMs);
  });
  await Promise.race([late, awaited]);
  clearTimeout(timer);
}

/** Waits for the names of sales: titles and seats that come later would move what is read already. */
export const namesReady = (sales: Iterable<string>): Promise<void> => beforeLong(Promise.allSettled([...new Set(sales)].map(saleReply)));

/** The names of a sale, better ones as soon as they are there; `before` is what was known of it once. */
export function useNames(sale: string, before: KnownSale | null = null): Names {
  const [known, setKnown] = useState<Schemas["SaleReply"] | null>(() => answered.get(sale) ?? null);
  useEffect(() => {
    let isOver = false;
    saleReply(sale).then((answer) => isOver || setKnown(answer), () => {});
    return () => {
      isOver = true;
    };
  }, [sale]);
  return namesOf(sale, (known?.sale === sale ? known : answered.get(sale)) ?? before);
}
