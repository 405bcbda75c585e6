/** The refund of an order by an operator. */
import { useState } from "preact/hooks";

import { Confirm } from "../order/confirm.tsx";
import type { Outcome } from "../order/done.tsx";
import { keyOf, leftOf, liveTickets, type LiveTicket } from "../order/give-back.ts";
import { repeated } from "../order/repeat.ts";
import type { Names } from "../order/sale.ts";
import { refusalText, stateWord, words } from "../order/words.ts";
import { may, routes, type DeskOrder } from "../operator/api.ts";
import { problem } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { money } from "../shared/format.ts";
import { checked, typedOf, type Draft, type DraftDefect, type Ready } from "./refund.ts";
import { t } from "./words.ts";

interface RefundProps {
  readonly whole: DeskOrder;
  readonly names: Names;
  readonly reload: () => Promise<void>;
  /** Takes what came of it: the form is another one by then. */
  readonly onOutcome: (outcome: Outcome | null) => void;
}

/** The form, or why there is none. */
export function RefundForm(props: RefundProps) {
  const { whole: { order, next } } = props;
  const why = !may("refund") ? t("no-right.refund")
    : order.state !== "paid" ? t("refund-none", { state: stateWord(order, clock.nowMs()) })
    : next === null ? words.t("refused.too-many-refunds") : null;
  return (
    <section class="card" aria-labelledby="refund">
      <h2 id="refund">{t("refund")}</h2>
      {why !== null ? <p class="hint">{why}</p> : <Form {...props} number={next ?? 1} />}
    </section>
  );
}

const WHATS = [["tickets", "refund-tickets"], ["all", "refund-all"], ["amount", "refund-amount-only"]] as const;

interface FormState {
  readonly what: Draft["what"];
  readonly chosen: ReadonlySet<string>;
  readonly hasAmount: boolean;
  readonly amount: string;
  readonly reason: string;
}

const EMPTY: FormState = { what: "tickets", chosen: new Set(), hasAmount: false, amount: "", reason: "" };

/** Sends refunds: each the same until it is known what became of it. */
function useRefund({ whole: { order }, reload, onOutcome }: RefundProps) {
  const [isSending, setSending] = useState(false);
  const send = async ({ body }: Ready) => {
    setSending(true);
    onOutcome(null);
    try {
      const refund = await repeated(() => routes.refund(order.order, body));
      await reload();
      onOutcome({ isGood: true, text: t("refund-done", { number: refund.number, amount: money(refund.amount_minor, refund.currency) }) });
    } catch (thrown) {
      await reload();
      onOutcome({ isGood: false, text: refusalText(problem(thrown)) });
    }
    setSending(false);
  };
  return { isSending, send };
}

function Form(props: RefundProps & { readonly number: number }) {
  const { whole, names, number } = props;
  const { order } = whole;
  const { isSending, send } = useRefund(props);
  const [state, setState] = useState(EMPTY);
  const [defect, setDefect] = useState<DraftDefect | null>(null);
  const [ready, setReady] = useState<Ready | null>(null);
  const set = (change: Partial<FormState>) => { setState((before) => ({ ...before, ...change })); setDefect(null); };
  const tickets = liveTickets(order, clock.nowMs());
  const given = tickets.filter((ticket) => state.chosen.has(keyOf(ticket)));
  const leftMinor = leftOf({ ...order, payments: whole.payments }, whole.refunds);
  const write = (minor: number) => money(minor, order.currency);
  const draft: Draft = { what: state.what, tickets: given, amount: state.what === "amount" || state.hasAmount ? state.amount : null, reason: state.reason };
  const now = checked(draft, number, order.currency, leftMinor);
  const submit = () => {
    setDefect(typeof now === "string" ? now : null);
    setReady(typeof now === "string" ? null : now);
  };
  const confirm = async (what: Ready) => {
    await send(what);
    setReady(null);
  };
  return (
    <form noValidate onSubmit={(event) => { event.preventDefault(); submit(); }}>
      <p class="hint">{t("refund-number", { number })} {t("refund-left", { left: write(leftMinor) })}</p>
      <fieldset class="ways">
        <legend>{t("refund-what")}</legend>
        {WHATS.map(([what, text]) => <label key={what}><input type="radio" name="what" checked={state.what === what} onChange={() => set({ what })} />{t(text)}</label>)}
      </fieldset>
      {state.what === "tickets" && <Choice tickets={tickets} names={names} chosen={state.chosen} write={write} onChosen={(chosen) => set({ chosen })} />}
      {state.what === "tickets" && (
        <label class="choice"><input type="checkbox" checked={state.hasAmount} onChange={(event) => set({ hasAmount: event.currentTarget.checked })} />{t("refund-other")}</label>
      )}
      {(state.what === "amount" || (state.what === "tickets" && state.hasAmount)) && (
        <Text id="amount" label={t("refund-amount", { currency: order.currency })} hint={t("refund-amount-hint", { left: write(leftMinor) })} value={state.amount} mode="decimal"
          isBad={defect === "refund-no-amount" || defect === "refund-too-much"} onInput={(amount) => set({ amount })} />
      )}
      <Text id="reason" label={t("refund-reason")} hint={t("refund-reason-hint")} value={state.reason} mode="text" isBad={defect === "refund-long-reason"} onInput={(reason) => set({ reason })} />
      {defect !== null && <p class="problem" role="alert">{t(defect, { left: write(leftMinor), example: typedOf(Math.min(leftMinor, 1250), order.currency) })}</p>}
      <button type="submit" class="danger">{typeof now === "string" ? t("refund") : t("refund-start", { amount: write(now.amountMinor) })}…</button>
      {ready !== null && <Sure names={names} ready={ready} all={tickets} write={write} isSending={isSending} onConfirm={() => void confirm(ready)} onClose={() => setReady(null)} />}
    </form>
  );
}

interface ChoiceProps {
  readonly tickets: readonly LiveTicket[];
  readonly names: Names;
  readonly chosen: ReadonlySet<string>;
  readonly write: (minor: number) => string;
  readonly onChosen: (chosen: ReadonlySet<string>) => void;
}

function Choice({ tickets, names, chosen, write, onChosen }: ChoiceProps) {
  const set = (ticket: LiveTicket, isChosen: boolean) => {
    const after = new Set(chosen);
    isChosen ? after.add(keyOf(ticket)) : after.delete(keyOf(ticket));
    onChosen(after);
  };
  return (
    <fieldset>
      <legend>{t("refund-which")}</legend>
      {tickets.map((ticket) => (
        <label class="choice" key={keyOf(ticket)}>
          <input type="checkbox" checked={chosen.has(keyOf(ticket))} onChange={(event) => set(ticket, event.currentTarget.checked)} />
          <span><strong>{names.seat(ticket.seat)}</strong> {names.tier(ticket.tier)}{ticket.attendee !== null && <>, {ticket.attendee}</>} <span class="hint">· {write(ticket.priceMinor)}</span></span>
        </label>
      ))}
    </fieldset>
  );
}

function Text({ id, label, hint, value, mode, isBad, onInput }: {
  readonly id: string; readonly label: string; readonly hint: string; readonly value: string; readonly mode: "decimal" | "text";
  readonly isBad: boolean; readonly onInput: (value: string) => void;
}) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input id={id} type="text" inputMode={mode} autocomplete="off" value={value} aria-describedby={`${id}-hint`} aria-invalid={isBad}
        onInput={(event) => onInput(event.currentTarget.value)} />
      <p class="hint" id={`${id}-hint`}>{hint}</p>
    </div>
  );
}

function Sure({ ready, all, names, write, isSending, onConfirm, onClose }: {
  readonly ready: Ready; readonly all: readonly LiveTicket[]; readonly names: Names; readonly write: (minor: number) => string;
  readonly isSending: boolean; readonly onConfirm: () => void; readonly onClose: () => void;
}) {
  const { body, amountMinor } = ready;
  const tickets = body.tickets ?? [];
  const seats = (tickets === "all" ? all : tickets).map(({ seat }) => seat);
  const amount = write(amountMinor);
  return (
    <Confirm title={t("refund-sure", { amount })} action={t("refund-start", { amount })} keep={t("refund-keep")} isSending={isSending} onConfirm={onConfirm} onClose={onClose}>
      <p>{seats.length === 0 ? t("refund-sure-no-tickets") : t("refund-sure-tickets", { tickets: seats.map((seat) => names.seat(seat)).join("; ") })}</p>
      {body.reason != null && <p>{t("reason", { reason: body.reason })}</p>}
      <p>{t("refund-sure-text")}</p>
    </Confirm>
  );
}
