/** One order, for operators: everything that happened to it, and what may be done. */
import { useState } from "preact/hooks";

import { Confirm } from "../order/confirm.tsx";
import { Done, type Outcome } from "../order/done.tsx";
import { Lines, Payments, Refunds, State } from "../order/parts.tsx";
import { repeated } from "../order/repeat.ts";
import { useNames, type Names } from "../order/sale.ts";
import { refusalText, words } from "../order/words.ts";
import { may, routes, type DeskOrder, type Step } from "../operator/api.ts";
import { problem } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { dateTime, money, shortDateTime } from "../shared/format.ts";
import { useLoaded } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { Loading, Problem, useTab } from "../shared/layout.tsx";
import { Age } from "../operator/parts.tsx";
import { RefundForm } from "./refund-form.tsx";
import { RefundWords } from "./refund-words.tsx";
import { Reissue } from "./reissue-form.tsx";
import { t } from "./words.ts";

/** Milliseconds between requests. */
const POLL_MS = 10_000;

/** An order. */
export function OrderView({ number }: { readonly number: string }) {
  const { data, failure, reload } = useLoaded(async () => ({ whole: await routes.order(number), atMs: clock.nowMs() }), POLL_MS, [number]);
  return (
    <>
      <p class="back"><a href={href("/operator/desk")} onClick={goBack}>← {t("back-to-search")}</a></p>
      {data === null && failure === null && <Loading />}
      {failure !== null && <Problem problem={failure} retry={() => void reload()} />}
      {data !== null && <Whole whole={data.whole} atMs={data.atMs} reload={reload} />}
    </>
  );
}

/** Back to the search that led here, if one did. */
function goBack(event: MouseEvent): void {
  const before = document.referrer === "" ? null : new URL(document.referrer);
  if (before?.origin === location.origin && before.pathname === "/operator/desk" && history.length > 1) {
    event.preventDefault();
    history.back();
  }
}

interface WholeProps {
  readonly whole: DeskOrder;
  readonly atMs: number;
  readonly reload: () => Promise<void>;
}

function Whole({ whole, atMs, reload }: WholeProps) {
  const { order, payments, refunds, history } = whole;
  const names = useNames(order.sale);
  useTab(`${t("open-order", { order: order.order })} · ${names.title}`);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  return (
    <>
      {outcome !== null && <Done {...outcome} />}
      <p class="hint"><Age atMs={atMs} /></p>
      <div class="pair">
        <div class="card">
          <Facts whole={whole} names={names} />
          <Lines order={order} names={names} withIds />
        </div>
        <div class="card">
          <h2>{t("history")}</h2>
          {history.length === 0 ? <p class="hint">{t("history-none")}</p> : <History steps={history} />}
        </div>
        <div class="card"><h2>{words.t("payments")}</h2><Payments payments={payments} /></div>
        <div class="card"><h2>{words.t("refunds")}</h2>{refunds.length === 0 ? <p class="hint">–</p> : <Refunds refunds={refunds} names={names} />}
          <RefundWords order={order.order} refunds={refunds} reload={reload} onOutcome={setOutcome} />
        </div>
      </div>
      {order.state === "pending" && <Cancel order={order.order} reload={reload} onOutcome={setOutcome} />}
      <Reissue whole={whole} names={names} reload={reload} onOutcome={setOutcome} />
      <RefundForm key={whole.next ?? 0} whole={whole} names={names} reload={reload} onOutcome={setOutcome} />
    </>
  );
}

function Facts({ whole: { order }, names }: { readonly whole: DeskOrder; readonly names: Names }) {
  return (
    <>
      <div class="head"><h2><a href={href(`/operator?sale=${encodeURIComponent(order.sale)}`)}>{names.title}</a></h2><State order={order} /></div>
      <dl class="facts">
        {order.buyer !== undefined && <><dt>{t("buyer")}</dt><dd><a href={href(`/operator/desk#${new URLSearchParams({ by: "buyer", buyer: order.buyer }).toString()}`)}>{order.buyer}</a></dd></>}
        <dt>{t("price")}</dt><dd>{money(order.amount_minor, order.currency)}</dd>
        <dt>{t("ordered")}</dt><dd>{dateTime(order.created_at)}</dd>
        {order.state === "pending" && <><dt>{t("pay-by")}</dt><dd>{dateTime(order.pay_by)}</dd></>}
        <dt>{t("changed")}</dt><dd>{dateTime(order.changed_at)}</dd>
      </dl>
    </>
  );
}

function stepText(kind: string): string {
  switch (kind) {
    case "made": case "pending": case "paid": case "cancelled": case "expired": case "refund_due": case "refunded": case "rescued": case "capture_refused": case "refund_made": case "refund_undone":
    case "dispute_opened": case "dispute_won": case "dispute_lost":
      return t(`step.${kind}`);
    default: return kind.replaceAll("_", " ");
  }
}

function byText(by: string): string {
  switch (by) {
    case "buyer": case "provider": case "operator": case "deadline": return t(`by.who.${by}`);
    default: return t("by", { who: by });
  }
}

function History({ steps }: { readonly steps: readonly Step[] }) {
  return (
    <ol class="records">
      {steps.map(({ number, kind, at, by, payment, amount_minor, currency, refund }) => (
        <li key={`${number}/${kind}/${at}`}>
          <p><strong>{stepText(kind)}</strong>{by !== undefined && <> {byText(by)}</>}</p>
          <p class="hint">
            {shortDateTime(at)}{amount_minor !== undefined && currency !== undefined && <> · {money(amount_minor, currency)}</>}
            {refund !== undefined && <> · {t("step-refund", { number: refund })}</>}{payment !== undefined && <> · <code>{payment}</code></>}
          </p>
        </li>
      ))}
    </ol>
  );
}

interface CancelProps {
  readonly order: string;
  readonly reload: () => Promise<void>;
  /** Takes what came of it. */
  readonly onOutcome: (outcome: Outcome | null) => void;
}

function Cancel({ order, reload, onOutcome }: CancelProps) {
  const [isAsked, setAsked] = useState(false);
  const [isSending, setSending] = useState(false);
  const cancel = async () => {
    setSending(true);
    onOutcome(null);
    try {
      await repeated(() => routes.cancel(order));
      await reload();
      onOutcome({ isGood: true, text: t("cancel-done") });
    } catch (thrown) {
      await reload();
      onOutcome({ isGood: false, text: refusalText(problem(thrown)) });
    }
    setSending(false);
    setAsked(false);
  };
  return (
    <section class="card" aria-labelledby="cancel">
      <h2 id="cancel">{t("cancel-title")}</h2>
      <p class="hint">{may("operate") ? t("cancel-hint") : t("no-right.operate")}</p>
      {may("operate") && <button type="button" class="danger" onClick={() => setAsked(true)}>{t("cancel-order")}</button>}
      {isAsked && (
        <Confirm title={t("cancel-sure", { order })} action={t("cancel-order")} keep={t("cancel-keep")} isSending={isSending}
          onConfirm={() => void cancel()} onClose={() => setAsked(false)}>
          <p>{t("cancel-hint")}</p>
        </Confirm>
      )}
    </section>
  );
}
