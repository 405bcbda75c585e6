/** `/checkout/{order}`: an order is paid here, and whoever comes back from a provider learns what became of it. */
import { useEffect, useRef, useState } from "preact/hooks";

import "./checkout.css";
import { buyer, problem, reply, type OnsaleProblem } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { clockTime, countdown, dateTime, duration, money } from "../shared/format.ts";
import { useLoaded, useNow, useSession } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { Loading, Page, Problem, SignInButton, start, useTab } from "../shared/layout.tsx";
import { announce } from "../shared/live.ts";
import { parameter } from "../shared/route.ts";
import { textOf } from "../shared/event.ts";
import { SaleNotice } from "../shared/sale-notice.tsx";
import { getJson, setJson, tabStore } from "../shared/storage.ts";
import { tellTabs } from "../shared/tabs.ts";
import { useAbout } from "../event/about.ts";
import { HeldOrders } from "../order/held-orders.tsx";
import { ordersChanged } from "../order/newest.ts";
import { Confirm } from "../order/confirm.tsx";
import { exchangeSums, pricesOf } from "../order/exchange.ts";
import { paymentOf } from "../order/give-back.ts";
import { ExchangeSum } from "../order/exchange-sum.tsx";
import { Lines, Payments, State } from "../order/parts.tsx";
import { repeated } from "../order/repeat.ts";
import { beforeLong, namesReady, useNames, type Names } from "../order/sale.ts";
import { WhenWhere } from "../order/when-where.tsx";
import { refusalText, stateWord, type Order } from "../order/words.ts";
import { AddToCalendar } from "../tickets/add-to-calendar.tsx";
import { Pay } from "./pay.tsx";
import { FromWallet, walletReady } from "./wallet.tsx";
import { passedMark, pollMs } from "./paying.ts";
import { words } from "./words.ts";

const { t } = words;

const ORDER = parameter("/checkout/{order}", "order");
const STARTED = `onsale.paying.${ORDER}`;
/** Other orders that are held: this one has its own clock. */
const others = () => <HeldOrders except={ORDER} />;

/** When a payment of this order was started in this tab, by the server's clock; null if none was. */
function startedAtMs(): number | null {
  const kept = getJson<{ atMs?: unknown }>(tabStore, STARTED)?.atMs;
  return typeof kept === "number" ? kept : null;
}

function Checkout() {
  const signedIn = useSession("buyers");
  if (signedIn === null) {
    return (
      <Page title={t("title-of", { order: ORDER })} banner={others()}>
        <p>{t("sign-in-first")}</p>
        <SignInButton role="buyers" />
      </Page>
    );
  }
  return <Mine key={signedIn.token} />;
}

function Mine() {
  const [everyMs, setEveryMs] = useState<number | null>(3_000);
  const [started, setStarted] = useState(startedAtMs);
  const load = async (): Promise<Order> => {
    const order = await reply(buyer.GET("/orders/{order}", { params: { path: { order: ORDER } } }));
    await beforeLong(Promise.all([namesReady([order.sale]), walletReady(order)]));
    return order;
  };
  const { data, failure, reload } = useLoaded(load, everyMs, [everyMs]);
  useEffect(() => setEveryMs(pollMs(data, started, clock.nowMs())), [data, started]);
  useAnnounced(data);
  const onStarted = (): void => {
    setJson(tabStore, STARTED, { atMs: clock.nowMs() });
    setStarted(clock.nowMs());
  };
  const title = t("title-of", { order: ORDER });
  if (data === null) {
    return (
      <Page title={title} banner={others()}>
        {failure === null ? <Loading />
          : failure.slug === "not-found" || failure.slug === "malformed" || failure.slug === "invalid" ? <><p class="problem">{t("not-yours")}</p><p><a class="button" href={href("/my/orders")}>{t("my-orders-link")}</a></p></>
            : <Problem problem={failure} retry={() => void reload()} />}
      </Page>
    );
  }
  return (
    <Page title={title} banner={others()}>
      <OrderView order={data} hasStarted={started !== null} failure={failure} onStarted={onStarted} onReload={() => void reload()} />
    </Page>
  );
}

/** Says once what became of the order, and forgets what the tab kept of it. */
function useAnnounced(order: Order | null): void {
  const before = useRef<Order["state"] | null>(null);
  useEffect(() => {
    if (order === null) return;
    if (before.current !== null && before.current !== order.state) {
      announce(order.state === "paid" ? t("announce.paid") : t("announce.ended", { state: stateWord(order, clock.nowMs()) }));
    }
    if (before.current !== null) ordersChanged();
    else if (order.state === "pending") tellTabs({ kind: "orders" });
    before.current = order.state;
    if (order.state === "pending") return;
    tabStore.remove(STARTED);
    if (tabStore.get(`onsale.last-order.${order.sale}`) === order.order) {
      tabStore.remove(`onsale.last-order.${order.sale}`);
      // What was bought, or given up, is not chosen any more.
      const choice = getJson<Record<string, unknown>>(tabStore, `onsale.choice.${order.sale}`);
      if (choice !== null) setJson(tabStore, `onsale.choice.${order.sale}`, { ...choice, seats: [], spots: {}, pattern: [] });
    }
  }, [order?.state]);
}

interface OrderViewProps {
  readonly order: Order;
  readonly hasStarted: boolean;
  readonly failure: OnsaleProblem | null;
  readonly onStarted: () => void;
  readonly onReload: () => void;
}

function OrderView({ order, hasStarted, failure, onStarted, onReload }: OrderViewProps) {
  const names = useNames(order.sale);
  useTab(`${names.title} · ${t("title-of", { order: order.order })}`);
  const now = useNow(1_000);
  const leftMs = Date.parse(order.pay_by) - now;
  const isPending = order.state === "pending";
  return (
    <>
      <p class="sale-title"><a href={href(`/s/${encodeURIComponent(order.sale)}`)}>{names.title}</a> <State order={order} /></p>
      <WhenWhere names={names} lines={order.lines} />
      <SaleNotice notice={names.notice} />
      {failure !== null && <p class="notice warn" role="status">{t("stale")}</p>}
      {isPending ? <Hold order={order} leftMs={leftMs} /> : <Done order={order} names={names} />}
      {isPending && hasStarted && leftMs > 0 && <p class="notice">{t("came-back")}</p>}
      <div class="checkout">
        <section class="card" aria-labelledby="lines-title">
          <h2 id="lines-title">{t(isPending || order.state === "paid" ? "lines" : "lines-over")}</h2>
          <Lines order={order} names={names} />
          <Sum order={order} names={names} />
          <Exchanged order={order} />
          <RefundTerms order={order} />
        </section>
        {isPending && (
          <section class="card paying" aria-label={t("how-to-pay")}>
            {leftMs > 0 && <FromWallet order={order} onStale={onReload} />}
            {leftMs > 0 && <Pay order={order} onStarted={onStarted} onStale={onReload} />}
            <Cancel order={order.order} onDone={onReload} />
          </section>
        )}
      </div>
      {(order.payments ?? []).some(({ provider }) => provider !== "free") && (
        <section aria-labelledby="payments-title">
          <h2 id="payments-title">{t("payments-title")}</h2>
          <Payments payments={order.payments ?? []} />
        </section>
      )}
    </>
  );
}

/** How long the tickets are held, by the server's clock. Said aloud at five minutes and at one, not each second. */
function Hold({ order, leftMs }: { readonly order: Order; readonly leftMs: number }) {
  const before = useRef(leftMs);
  useEffect(() => {
    const mark = passedMark(before.current, leftMs);
    before.current = leftMs;
    if (mark !== undefined) announce(t("hold-minutes", { time: duration(mark) }));
  }, [leftMs]);
  if (leftMs <= 0) return <p class="notice warn" role="status">{t("pay-over")}</p>;
  return (
    <div class={`hold${leftMs < 60_000 ? " soon" : ""}`}>
      <p>{t("hold-left")}</p>
      <p class="count" role="timer">{countdown(leftMs)}</p>
      <p class="hint">{t("hold-until", { at: clockTime(order.pay_by) })}{leftMs < 60_000 && <strong> {t("hold-soon")}</strong>}</p>
    </div>
  );
}

/** What became of an order that is over, and what can be done next. */
function Done({ order, names }: { readonly order: Order; readonly names: Names }) {
  const { isMoney } = names;
  const about = useAbout(order.state === "paid" ? names.event : null);
  if (order.state === "pending") return null;
  const isGood = order.state === "paid";
  const key = isGood && order.exchange !== undefined ? "done.exchanged" : isGood && isMoney ? "done.money" : isGood && order.amount_minor === 0 ? "done.free" : (`done.${order.state}` as const);
  return (
    <div class={isGood ? "good" : "notice warn"}>
      <p>{t(key)}</p>
      {isGood
        ? <p class="actions"><a class="button primary" href={href(isMoney ? "/my/orders" : `/my/tickets/${order.order}`)}>{t(isMoney ? "to-wallet" : "to-tickets")}</a> {!isMoney && <AddToCalendar order={order} names={names} address={textOf(about?.address)} />}</p>
        : <p class="actions"><a class="button" href={href(`/s/${encodeURIComponent(order.sale)}/seats`)}>{t("again")}</a> <a class="button" href={href("/my/orders")}>{t("my-orders-link")}</a></p>}
    </div>
  );
}

/** The price line by line, and the sum. */
function Sum({ order, names }: { readonly order: Order; readonly names: Names }) {
  const amount = (minor: number): string => (minor === 0 ? t("free-of-charge") : money(minor, order.currency));
  return (
    <dl class="prices">
      {order.lines.map(({ tier, price_minor, tickets }) => (
        <div class="pair" key={tier}>
          <dt>{t("line-price", { count: tickets.length, tier: names.tier(tier) })}</dt>
          <dd>{amount(price_minor * tickets.length)}</dd>
        </div>
      ))}
      <div class="pair total"><dt>{t("total")}</dt><dd>{amount(order.amount_minor)}</dd></div>
    </dl>
  );
}

/** What is given for these tickets, and what comes back for it. */
function Exchanged({ order }: { readonly order: Order }) {
  const { exchange, state } = order;
  if (exchange === undefined || (state !== "pending" && state !== "paid")) return null;
  const values = { order: exchange.order, worth: money(exchange.value_minor, order.currency) };
  return (
    <>
      <p class="hint">{t(exchange.pays ? "exchange.pays" : state === "paid" ? "exchange.done" : "exchange.whole", values)}</p>
      <ExchangedSum order={order} exchange={exchange} />
    </>
  );
}

/** The sums of an exchange, once the order is known whose tickets are given: only it says what they cost. */
function ExchangedSum({ order, exchange }: { readonly order: Order; readonly exchange: NonNullable<Order["exchange"]> }) {
  const { data: old } = useLoaded(() => reply(buyer.GET("/orders/{order}", { params: { path: { order: exchange.order } } })), null, [exchange.order]);
  if (old === null) return null;
  const sums = exchangeSums(pricesOf(old, exchange.tickets), exchange.value_minor, order.amount_minor);
  return <ExchangeSum sums={sums} currency={order.currency} provider={paymentOf(old)?.provider ?? null} />;
}

/** Until when, and for what fee, tickets may be given back. */
function RefundTerms({ order }: { readonly order: Order }) {
  const terms = order.lines.flatMap(({ refundable }) => (refundable === undefined ? [] : [refundable]));
  const first = terms[0];
  if (first === undefined) return null;
  const dearest = Math.max(...terms.map(({ fee_minor }) => fee_minor));
  const until = dateTime(first.until);
  return <p class="hint">{dearest === 0 ? t("refundable-free", { until }) : t("refundable", { until, fee: money(dearest, order.currency) })}</p>;
}

/** Gives the order up, after a question. */
function Cancel({ order, onDone }: { readonly order: string; readonly onDone: () => void }) {
  const [state, setState] = useState<"ready" | "asking" | "sending">("ready");
  const [refusal, setRefusal] = useState<OnsaleProblem | null>(null);
  const cancel = async (): Promise<void> => {
    setState("sending");
    setRefusal(null);
    try {
      await repeated(() => reply(buyer.POST("/orders/{order}/cancel", { params: { path: { order } } })));
    } catch (thrown) {
      setRefusal(problem(thrown));
    }
    setState("ready");
    onDone();
  };
  return (
    <div class="give-up">
      {refusal !== null && <p class="problem" role="alert">{refusalText(refusal)}</p>}
      <button type="button" class="quiet" disabled={state === "sending"} onClick={() => setState("asking")}>{t("cancel-order")}</button>
      {state !== "ready" && (
        <Confirm title={t("cancel-order")} action={t("cancel-yes")} keep={t("cancel-no")} isSending={state === "sending"} onConfirm={() => void cancel()} onClose={() => setState("ready")}>
          <p>{t("cancel-sure")}</p>
        </Confirm>
      )}
    </div>
  );
}

void start(<Checkout />, { needsSession: true });
