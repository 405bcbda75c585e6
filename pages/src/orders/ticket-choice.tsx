/** Choosing some of an order's tickets: to give back, or to exchange. */
import { useEffect, useState } from "preact/hooks";

import { keyOf, type LiveTicket } from "../order/give-back.ts";
import type { Names } from "../order/sale.ts";
import { t } from "./words.ts";

/** A choice among the tickets that may be chosen: those with a fee, which may be 0. */
export interface TicketChoice {
  readonly possible: readonly LiveTicket[];
  readonly chosen: readonly LiveTicket[];
  readonly set: (tickets: readonly LiveTicket[], isChosen: boolean) => void;
  /** True once somebody has gone on without choosing, until one is chosen. */
  readonly isMissing: boolean;
  /** Says whether any is chosen; if none is, it is missing. */
  readonly isMade: () => boolean;
}

/** What is chosen of these tickets, from nothing. */
export function useTicketChoice(tickets: readonly LiveTicket[]): TicketChoice {
  const [keys, setKeys] = useState<ReadonlySet<string>>(new Set());
  const [isMissing, setMissing] = useState(false);
  const possible = tickets.filter(({ feeMinor }) => feeMinor !== null);
  const chosen = possible.filter((ticket) => keys.has(keyOf(ticket)));
  useEffect(() => {
    if (chosen.length > 0) setMissing(false);
  }, [chosen.length]);
  const set = (some: readonly LiveTicket[], isChosen: boolean) => setKeys((before) => {
    const after = new Set(before);
    some.forEach((ticket) => (isChosen ? after.add(keyOf(ticket)) : after.delete(keyOf(ticket))));
    return after;
  });
  const isMade = () => {
    setMissing(chosen.length === 0);
    return chosen.length > 0;
  };
  return { possible, chosen, set, isMissing, isMade };
}

interface TicketBoxesProps {
  readonly legend: string;
  /** All tickets that are shown, also those that cannot be chosen. */
  readonly tickets: readonly LiveTicket[];
  readonly choice: TicketChoice;
  readonly names: Names;
  /** What choosing one means. */
  readonly about: (ticket: LiveTicket) => string;
}

/** A box for each ticket, and one for all. */
export function TicketBoxes({ legend, tickets, choice, names, about }: TicketBoxesProps) {
  const { possible, chosen, set, isMissing } = choice;
  return (
    <>
      <fieldset>
        <legend>{legend}</legend>
        {possible.length > 1 && (
          <label class="choice all"><input type="checkbox" checked={chosen.length === possible.length}
            onChange={(event) => set(possible, event.currentTarget.checked)} />{t("give-back.all")}</label>
        )}
        {tickets.map((ticket) => (
          <label class="choice" key={keyOf(ticket)}>
            <input type="checkbox" disabled={ticket.feeMinor === null} checked={chosen.includes(ticket)}
              onChange={(event) => set([ticket], event.currentTarget.checked)} />
            <span><strong>{names.seat(ticket.seat)}</strong> {names.tier(ticket.tier)}{ticket.attendee !== null && <>, {ticket.attendee}</>}
              <span class="hint"> · {about(ticket)}</span></span>
          </label>
        ))}
      </fieldset>
      {isMissing && <p class="problem" role="alert">{t("give-back.none")}</p>}
    </>
  );
}
