/** The seats of the open section as a grid of buttons: the way of everybody who does not use the canvas. */
import { useEffect, useRef, useState } from "preact/hooks";

import { type Plan, rowLabel, shortName, tierOf } from "../map/plan.ts";
import { rowOrder } from "../map/rows.ts";
import { CHOSEN, FREE, LOST, OFFERED, TAKEN, WITHHELD } from "../map/state.ts";
import { WheelchairSign } from "../shared/wheelchair-sign.tsx";
import { Tick } from "./icons.tsx";
import { words } from "./words.ts";

const { t } = words;

interface SectionGridProps {
  readonly plan: Plan;
  readonly section: number;
  readonly states: Uint8Array;
  /** The price of the section's tier in words. */
  readonly price: string;
  readonly onSeat: (seat: number) => void;
}

/** The state of a seat in a word. */
export function stateWord(state: number): string {
  switch (state) {
    case FREE: return t("state-of.free");
    case TAKEN: return t("state-of.taken");
    case WITHHELD: return t("state-of.withheld");
    case CHOSEN: return t("state-of.chosen");
    case LOST: return t("state-of.lost");
    case OFFERED: return t("state-of.offered");
    default: return t("state-of.unknown");
  }
}

const CLASSES = ["free", "taken", "withheld", "chosen", "lost", "offered", "unknown"] as const;
const SIGNS = ["", "", "", <Tick />, "×", "→", ""] as const;

/** The rows of a section in the order in which people look for them. */
export function rowsOf(plan: Plan, section: number): number[] {
  const { firstRow, rows } = plan.sections[section] ?? { firstRow: 0, rows: 0 };
  return rowOrder(plan.rows.slice(firstRow, firstRow + rows).map(({ label }) => label)).map((at) => firstRow + at);
}

/** The seat that a key moves to: in the row, or to the nearest place of the next of the rows. */
export function movedTo(plan: Plan, rows: readonly number[], seat: number, key: string): number | undefined {
  const row = plan.rowOf[seat] ?? 0;
  const planRow = plan.rows[row];
  if (planRow === undefined) return undefined;
  const last = planRow.first + planRow.seats - 1;
  const beside = (by: number): number | undefined => {
    const next = plan.rows[rows[rows.indexOf(row) + by] ?? -1];
    if (next === undefined || next.seats === 0) return undefined;
    const place = plan.placeOf[seat] ?? 0;
    let best = next.first;
    for (let at = next.first; at < next.first + next.seats; at += 1) {
      if (Math.abs((plan.placeOf[at] ?? 0) - place) < Math.abs((plan.placeOf[best] ?? 0) - place)) best = at;
    }
    return best;
  };
  switch (key) {
    case "ArrowRight": return seat < last ? seat + 1 : undefined;
    case "ArrowLeft": return seat > planRow.first ? seat - 1 : undefined;
    case "ArrowDown": return beside(1);
    case "ArrowUp": return beside(-1);
    case "Home": return planRow.first;
    case "End": return last;
    default: return undefined;
  }
}

/** The grid. */
export function SectionGrid({ plan, section, states, price, onSeat }: SectionGridProps) {
  const planSection = plan.sections[section];
  const order = rowsOf(plan, section);
  const first = plan.rows[order[0] ?? -1]?.first ?? 0;
  const [current, setCurrent] = useState(first);
  const grid = useRef<HTMLDivElement>(null);
  useEffect(() => setCurrent(first), [section]);
  if (planSection === undefined) return null;
  const tier = plan.tiers[planSection.tier]?.name ?? "";
  const title = t(plan.isTrain ? "coach-title" : "section-title", { section: planSection.name });
  const move = (event: KeyboardEvent): void => {
    // Keys may come faster than the page is rendered: the seat with the focus counts.
    const focused = event.target instanceof HTMLElement ? Number(event.target.dataset["seat"] ?? current) : current;
    const next = movedTo(plan, order, focused, event.key);
    if (next === undefined) return;
    event.preventDefault();
    setCurrent(next);
    grid.current?.querySelector<HTMLButtonElement>(`[data-seat="${next}"]`)?.focus();
  };
  const rows = order.flatMap((row) => plan.rows[row] ?? []);
  return (
    <section class="section-grid" aria-labelledby="section-title">
      <h2 id="section-title">{title} <span class="hint"><WheelchairSign of={tier} />{tier}, {price}</span></h2>
      <p class="hint" id="section-keys">{t("section-keys")}</p>
      <div class="scroll">
        <div role="grid" aria-labelledby="section-title" aria-describedby="section-keys" ref={grid} onKeyDown={move}>
          {rows.map((row) => (
            <div role="row" class="seats-row" key={row.first}>
              <div role="rowheader" class="row-name"><span class="unseen">{t("row-name", { row: row.label })}</span><span aria-hidden="true">{row.label}</span></div>
              {Array.from({ length: row.seats }, (_, at) => row.first + at).map((seat) => {
                const state = states[seat] ?? 6;
                const before = seat > row.first ? (plan.placeOf[seat - 1] ?? 0) : -1;
                const gap = (plan.placeOf[seat] ?? 0) - before - 1;
                const isOpen = state === FREE || state === CHOSEN || state === LOST || state === OFFERED;
                return (
                  <div role="gridcell" key={seat} style={gap > 0 ? { marginInlineStart: `${Math.min(gap, 6) * 1.1}rem` } : undefined}>
                    <button
                      type="button" class={`seat ${CLASSES[state] ?? "unknown"}`} data-seat={seat} tabIndex={seat === current ? 0 : -1}
                      aria-pressed={state === CHOSEN || state === LOST} aria-disabled={!isOpen}
                      aria-label={t("seat-in-row", { row: rowLabel(plan, seat), seat: shortName(plan, seat), tier: plan.tiers[tierOf(plan, seat)]?.name ?? "", price, state: stateWord(state) })}
                      onFocus={() => setCurrent(seat)} onClick={() => isOpen && onSeat(seat)}
                    ><span aria-hidden="true">{SIGNS[state] || shortName(plan, seat)}</span></button>
                  </div>
                );
              })}
            </div>
          ))}
        </div>
      </div>
    </section>
  );
}
