/** Issuing the tickets of an order anew: every older code of them is void. */
import { useState } from "preact/hooks";

import { Confirm } from "../order/confirm.tsx";
import type { Outcome } from "../order/done.tsx";
import { refusalText } from "../order/words.ts";
import type { Names } from "../order/sale.ts";
import { may, routes, type DeskOrder } from "../operator/api.ts";
import { problem } from "../shared/api.ts";
import { reissuable, type NumberedTicket } from "./reissue.ts";
import { t, tn } from "./words.ts";

interface ReissueProps {
  readonly whole: DeskOrder;
  readonly names: Names;
  readonly reload: () => Promise<void>;
  /** Takes what came of it. */
  readonly onOutcome: (outcome: Outcome | null) => void;
}

/** The form; nothing where no ticket is good. */
export function Reissue({ whole, names, reload, onOutcome }: ReissueProps) {
  const tickets = reissuable(whole.order);
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  const [isAsked, setAsked] = useState(false);
  const [isSending, setSending] = useState(false);
  const wanted = tickets.filter(({ number }) => chosen.has(number));
  const send = async () => {
    setSending(true);
    onOutcome(null);
    try {
      // Not repeated without being asked: each time is another issue.
      await routes.reissue(whole.order.order, wanted.map(({ number }) => number));
      await reload();
      onOutcome({ isGood: true, text: tn("reissue-done", wanted.length) });
      setChosen(new Set());
    } catch (thrown) {
      await reload();
      onOutcome({ isGood: false, text: refusalText(problem(thrown)) });
    }
    setSending(false);
    setAsked(false);
  };
  const choose = ({ number }: NumberedTicket, isChosen: boolean) => {
    const after = new Set(chosen);
    isChosen ? after.add(number) : after.delete(number);
    setChosen(after);
  };
  if (tickets.length === 0) {
    return null;
  }
  return (
    <section class="card" aria-labelledby="reissue">
      <h2 id="reissue">{t("reissue")}</h2>
      <p class="hint">{may("operate") ? t("reissue-hint") : t("no-right.reissue")}</p>
      {may("operate") && (
        <form noValidate onSubmit={(event) => { event.preventDefault(); if (wanted.length > 0) setAsked(true); }}>
          <fieldset>
            <legend>{t("reissue-which")}</legend>
            {tickets.map((ticket) => (
              <label class="choice" key={ticket.number}>
                <input type="checkbox" checked={chosen.has(ticket.number)} onChange={(event) => choose(ticket, event.currentTarget.checked)} />
                <span><strong>{names.seat(ticket.seat)}</strong> {names.tier(ticket.tier)}{ticket.attendee !== null && <>, {ticket.attendee}</>} <span class="hint">· {t("reissue-number", { number: ticket.number })}</span></span>
              </label>
            ))}
          </fieldset>
          <button type="submit" disabled={wanted.length === 0}>{t("reissue-start")}…</button>
        </form>
      )}
      {isAsked && (
        <Confirm title={tn("reissue-sure", wanted.length)} action={t("reissue-start")} keep={t("reissue-keep")} isSending={isSending} onConfirm={() => void send()} onClose={() => setAsked(false)}>
          <p>{t("reissue-sure-text", { seats: wanted.map(({ seat }) => names.seat(seat)).join("; ") })}</p>
        </Confirm>
      )}
    </section>
  );
}
