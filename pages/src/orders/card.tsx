/** One order of the list. */
import { useEffect, useRef, useState } from "preact/hooks";

import { Confirm } from "../order/confirm.tsx";
import { Done, type Outcome } from "../order/done.tsx";
import { liveTickets } from "../order/give-back.ts";
import { ordersChanged } from "../order/newest.ts";
import { Lines, State } from "../order/parts.tsx";
import { repeated } from "../order/repeat.ts";
import { useNames } from "../order/sale.ts";
import { WhenWhere } from "../order/when-where.tsx";
import { refusalText, words, type Order } from "../order/words.ts";
import { buyer, problem, reply } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { clockTime, countdown, money, shortDateTime } from "../shared/format.ts";
import { useNow } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { Details } from "./details.tsx";
import { t, tn } from "./words.ts";

interface CardProps {
  readonly order: Order;
  /** Takes what is newly known of the order. */
  readonly replace: (order: Order) => void;
}

const anchorOf = (order: Order) => `#order-${order.order}`;

/** One order; the address names the one whose details are open, so that reloading and coming back show it again. */
export function OrderCard({ order, replace }: CardProps) {
  const names = useNames(order.sale);
  const [isOpen, setOpen] = useState(() => location.hash === anchorOf(order));
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const heading = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isOpen) {
      heading.current?.scrollIntoView({ block: "start" });
    }
  }, []);
  const toggle = () => {
    history.replaceState(history.state, "", location.pathname + location.search + (isOpen ? "" : anchorOf(order)));
    setOpen(!isOpen);
  };
  const details = `details-${order.order}`;
  const may = (terms: "refundable" | "exchangeable"): boolean => liveTickets(order, clock.nowMs(), terms).some(({ feeMinor }) => feeMinor !== null);
  const [mayGiveBack, mayExchange] = [may("refundable"), may("exchangeable")];
  const hasTickets = order.lines.some(({ tickets }) => tickets.some(({ refund }) => refund === undefined)) && order.state === "paid" && !names.isMoney;
  return (
    <article class={`card order ${order.state === "pending" || order.state === "paid" ? "" : "over"}`} aria-labelledby={`order-${order.order}`} ref={heading}>
      <div class="head">
        <h2 id={`order-${order.order}`}><a href={href(`/s/${encodeURIComponent(order.sale)}`)}>{names.title}</a></h2>
        <State order={order} />
      </div>
      <WhenWhere names={names} lines={order.lines} />
      <p class="hint facts-line">
        {words.t("order-number", { order: order.order })} · {shortDateTime(order.created_at)} · <strong>{money(order.amount_minor, order.currency)}</strong>
        {order.refunds !== undefined && <> · {tn(order.refunds.back < order.refunds.made ? "given-back.made" : "given-back.back", order.refunds.made)}</>}
      </p>
      {outcome !== null && <Done {...outcome} />}
      <About order={order} />
      <Lines order={order} names={names} />
      <div class="row buttons">
        {order.state === "pending" && <Pending order={order} replace={replace} onOutcome={setOutcome} />}
        {hasTickets && <a class="button" href={href(`/my/tickets/${order.order}`)}>{t("tickets")}</a>}
        <button type="button" aria-expanded={isOpen} aria-controls={details} onClick={toggle}>{t(mayGiveBack && mayExchange ? "details-both" : mayGiveBack ? "details-give-back" : mayExchange ? "details-exchange" : "details")}</button>
      </div>
      <div id={details}>{isOpen && <Details order={order} replace={replace} names={names} />}</div>
    </article>
  );
}

function About({ order }: { readonly order: Order }) {
  const now = useNow(1_000);
  switch (order.state) {
    case "paid": return null;
    case "pending": {
      const leftMs = Date.parse(order.pay_by) - now;
      return <p>{leftMs > 0 ? t("about.pending", { left: countdown(leftMs), time: clockTime(order.pay_by) }) : t("about.over")}</p>;
    }
    case "cancelled": case "expired": case "refund_due": case "refunded": return <p>{t(`about.${order.state}`)}</p>;
  }
}

/** What may be done with an order that is not paid. */
function Pending({ order, replace, onOutcome }: CardProps & { readonly onOutcome: (outcome: Outcome | null) => void }) {
  const now = useNow(1_000);
  const [isAsked, setAsked] = useState(false);
  const [isSending, setSending] = useState(false);
  const path = { params: { path: { order: order.order } } };
  const cancel = async () => {
    setSending(true);
    onOutcome(null);
    try {
      replace(await repeated(() => reply(buyer.POST("/orders/{order}/cancel", path))));
      ordersChanged();
      onOutcome({ isGood: true, text: t("cancel.done") });
    } catch (thrown) {
      // Whatever the refusal was, the order may have changed: paid in another tab, or run out.
      await reply(buyer.GET("/orders/{order}", path)).then(replace, () => {});
      onOutcome({ isGood: false, text: refusalText(problem(thrown)) });
    }
    setSending(false);
    setAsked(false);
  };
  const tickets = order.lines.reduce((sum, line) => sum + line.tickets.length, 0);
  return (
    <>
      {now < Date.parse(order.pay_by) && <a class="button primary" href={href(`/checkout/${order.order}`)}>{t("pay")}</a>}
      <button type="button" onClick={() => setAsked(true)}>{t("cancel-order")}</button>
      {isAsked && (
        <Confirm title={t("cancel.sure")} action={t("cancel-order")} keep={t("cancel.keep")} isSending={isSending}
          onConfirm={() => void cancel()} onClose={() => setAsked(false)}>
          <p>{tn("cancel.sure-text", tickets)}</p>
        </Confirm>
      )}
    </>
  );
}
