/** What the seat below the mouse is: for the eye only, the grid of the section tells everybody else. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import type { Hovered } from "../map/seat-map.ts";
import { placeOfTip } from "../map/tip.ts";

/** What the words need of the map. */
export interface SeatTipProps {
  /** What the map calls; set here, so that only these words render again when the mouse moves on. */
  readonly tell: { current: (over: Hovered | undefined) => void };
  readonly map: { readonly current: HTMLElement | null };
  /** What a seat is called, and its category, price and state. */
  readonly wordsOf: (seat: number) => { readonly name: string; readonly about: string };
}

/** The words beside the seat; nothing while the mouse is over none. */
export function SeatTip({ tell, map, wordsOf }: SeatTipProps) {
  const [over, setOver] = useState<Hovered | undefined>(undefined);
  const element = useRef<HTMLParagraphElement>(null);
  tell.current = setOver;
  useLayoutEffect(() => {
    const [tip, host] = [element.current, map.current];
    if (over === undefined || tip === null || host === null) return;
    const { left, top } = placeOfTip(over.x, over.y, over.half, { width: tip.offsetWidth, height: tip.offsetHeight }, { width: host.clientWidth, height: host.clientHeight });
    tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  });
  if (over === undefined) return null;
  const { name, about } = wordsOf(over.seat);
  return <p class="seat-tip" aria-hidden="true" ref={element}><strong>{name}</strong> {about}</p>;
}
