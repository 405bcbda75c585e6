/** The payments and refunds of an order, and giving tickets back. */
import { useState } from "preact/hooks";

import { Confirm } from "../order/confirm.tsx";
import { Done, type Outcome } from "../order/done.tsx";
import { lastChance, liveTickets, totalsOf, type LiveTicket } from "../order/give-back.ts";
import { Payments, Refunds } from "../order/parts.tsx";
import { repeated } from "../order/repeat.ts";
import type { Names } from "../order/sale.ts";
import { refusalText, words, type Order } from "../order/words.ts";
import { buyer, problem, reply, type Schemas } from "../shared/api.ts";
import { dateTime, money } from "../shared/format.ts";
import { useLoaded, useNow } from "../shared/hooks.ts";
import { Loading, Problem } from "../shared/layout.tsx";
import { ExchangeForm } from "./exchange-form.tsx";
import { TicketBoxes, useTicketChoice } from "./ticket-choice.tsx";
import { t, tn } from "./words.ts";

interface DetailsProps {
  readonly order: Order;
  readonly replace: (order: Order) => void;
  readonly names: Names;
}

const isMoving = (order: Order, { refunds }: Schemas["OrderRefunds"]) =>
  order.state === "pending" || refunds.some(({ state }) => !["refunded", "outside", "settled"].includes(state))
  || (order.payments ?? []).some(({ refund }) => refund !== undefined && refund.state !== "refunded");

/** What is known of an order alone. Asked for again while money moves, and whenever the list says that it changed. */
export function Details({ order, replace, names }: DetailsProps) {
  const [moves, setMoves] = useState(false);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const { data, failure, reload } = useLoaded(async () => {
    const path = { params: { path: { order: order.order } } };
    const [whole, refunds] = await Promise.all([
      reply(buyer.GET("/orders/{order}", path)), reply(buyer.GET("/orders/{order}/refunds", path))]);
    replace(whole);
    setMoves(isMoving(whole, refunds));
    return { whole, refunds };
  }, moves ? 5_000 : null, [order.order, order.changed_at, order.refunds?.made, order.refunds?.back, moves]);
  if (data === null) {
    return failure === null ? <Loading /> : <Problem problem={failure} retry={() => void reload()} />;
  }
  return (
    <div class="details">
      <h3>{words.t("payments")}</h3>
      <Payments payments={data.whole.payments ?? []} />
      {data.refunds.refunds.length > 0 && <><h3>{words.t("refunds")}</h3><Refunds refunds={data.refunds.refunds} names={names} /></>}
      {outcome !== null && <Done {...outcome} />}
      {data.whole.state === "paid" && <GiveBack order={data.whole} next={data.refunds.next ?? null} names={names} reload={reload} onOutcome={setOutcome} />}
      {data.whole.state === "paid" && <ExchangeForm order={data.whole} refunds={data.refunds.refunds} names={names} />}
      {failure !== null && <Problem problem={failure} />}
    </div>
  );
}

interface GiveBackProps {
  readonly order: Order;
  /** The number that the next refund has: its idempotency key. */
  readonly next: number | null;
  readonly names: Names;
  readonly reload: () => Promise<void>;
  /** Takes what came of it: the form is another one by then. */
  readonly onOutcome: (outcome: Outcome | null) => void;
}

function GiveBack({ order, next, names, reload, onOutcome }: GiveBackProps) {
  const now = useNow(10_000);
  const until = lastChance(order);
  const tickets = liveTickets(order, now);
  if (until === null) {
    return <><h3>{t("give-back")}</h3><p class="hint">{t("give-back.never")}</p></>;
  }
  if (!tickets.some(({ feeMinor }) => feeMinor !== null)) {
    return <><h3>{t("give-back")}</h3><p class="hint">{t("give-back.was", { until: dateTime(until) })}</p></>;
  }
  if (next === null) {
    return <><h3>{t("give-back")}</h3><p class="hint">{words.t("refused.too-many-refunds")}</p></>;
  }
  return (
    <>
      <h3>{t("give-back")}</h3>
      <p class="hint">{t("give-back.until", { until: dateTime(until) })}</p>
      <GiveBackForm key={next} order={order} next={next} names={names} reload={reload} onOutcome={onOutcome} tickets={tickets} />
    </>
  );
}

/** One refund: what was chosen under its number is sent again as it was, until it is known what became of it. */
function useGiveBack({ order, next: number, reload, onOutcome }: GiveBackProps & { readonly next: number }) {
  const [isSending, setSending] = useState(false);
  const send = async (tickets: readonly LiveTicket[]) => {
    setSending(true);
    onOutcome(null);
    const body = { number, tickets: tickets.map(({ tier, seat }) => ({ tier, seat })) };
    try {
      const refund = await repeated(() => reply(buyer.POST("/orders/{order}/refunds", { params: { path: { order: order.order } }, body })));
      await reload();
      onOutcome({ isGood: true, text: refund.amount_minor > 0 ? t("give-back.done", { amount: money(refund.amount_minor, refund.currency) }) : t("give-back.done-nothing") });
    } catch (thrown) {
      await reload();
      onOutcome({ isGood: false, text: refusalText(problem(thrown)) });
    }
    setSending(false);
  };
  return { isSending, send };
}

function GiveBackForm(props: GiveBackProps & { readonly next: number; readonly tickets: readonly LiveTicket[] }) {
  const { order, names, tickets } = props;
  const choice = useTicketChoice(tickets);
  const [isAsked, setAsked] = useState(false);
  const { isSending, send } = useGiveBack(props);
  const given = choice.chosen;
  const totals = totalsOf(given);
  const amount = (minor: number) => money(minor, order.currency);
  const confirm = async () => {
    await send(given);
    setAsked(false);
  };
  return (
    <form noValidate onSubmit={(event) => { event.preventDefault(); setAsked(choice.isMade()); }}>
      <TicketBoxes legend={t("give-back.choose")} tickets={tickets} choice={choice} names={names}
        about={({ feeMinor, priceMinor }) => (feeMinor === null ? t("give-back.not")
          : feeMinor === 0 ? t("give-back.ticket-free", { price: amount(priceMinor) })
          : t("give-back.ticket", { price: amount(priceMinor), fee: amount(feeMinor) }))} />
      {given.length > 0 && <Sum totals={totals} amount={amount} />}
      <button type="submit">{given.length === 0 ? t("give-back") : tn("give-back.start", given.length)}</button>
      {isAsked && given.length > 0 && (
        <Confirm title={tn("give-back.sure", given.length)} action={tn("give-back.start", given.length)} keep={t("give-back.keep")}
          isSending={isSending} onConfirm={() => void confirm()} onClose={() => setAsked(false)}>
          <p>{given.map(({ seat }) => names.seat(seat)).join("; ")}</p>
          <Sum totals={totals} amount={amount} />
          <p>{totals.backMinor > 0 ? t("give-back.how", { amount: amount(totals.backMinor) }) : t("give-back.how-nothing")}</p>
          <p>{t("give-back.sure-text")}</p>
        </Confirm>
      )}
    </form>
  );
}

function Sum({ totals, amount }: { readonly totals: ReturnType<typeof totalsOf>; readonly amount: (minor: number) => string }) {
  return (
    <dl class="sum">
      <dt>{t("give-back.price")}</dt><dd>{amount(totals.priceMinor)}</dd>
      <dt>{t("give-back.fee")}</dt><dd>−{amount(totals.feeMinor)}</dd>
      <dt class="total">{t("give-back.back")}</dt><dd class="total">{amount(totals.backMinor)}</dd>
    </dl>
  );
}
