/** `/my/tickets/{order}`: the tickets of an order, each with its code, to show and to print. */
import { useEffect, useRef } from "preact/hooks";

import "./tickets.css";
import { State } from "../order/parts.tsx";
import { HeldOrders } from "../order/held-orders.tsx";
import { useNames, type Names } from "../order/sale.ts";
import { ticketLook, ticketWord } from "../order/ticket-state.ts";
import { stateWord, words, type Order } from "../order/words.ts";
import en from "../i18n/tickets.en.json";
import zh from "../i18n/tickets.zh.json";
import { buyer, problem, reply, type OnsaleProblem } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { shortDateTime } from "../shared/format.ts";
import { useLoaded, useSession } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { Loading, Page, Problem, SignInButton, start } from "../shared/layout.tsx";
import { parameter } from "../shared/route.ts";
import { texts } from "../shared/text.ts";
import { Qr } from "./qr.tsx";
import { codesOf, ticketsOf, type CodedTicket, type ShownTicket } from "./ticket.ts";

const { t } = texts(en, zh);
const ORDER = parameter("/my/tickets/{order}", "order");

interface Loaded {
  readonly order: Order;
  readonly codes: readonly CodedTicket[] | null;
  /** Why there are no codes though the order has tickets; null if there is no reason to name. */
  readonly failure: OnsaleProblem | null;
}

async function load(): Promise<Loaded> {
  const [order, codes] = await Promise.allSettled([reply(buyer.GET("/orders/{order}", { params: { path: { order: ORDER } } })), codesOf(ORDER)]);
  if (order.status === "rejected") {
    throw problem(order.reason);
  }
  return codes.status === "fulfilled"
    ? { order: order.value, codes: codes.value, failure: null }
    : { order: order.value, codes: null, failure: problem(codes.reason) };
}

function Tickets() {
  const session = useSession("buyers");
  const hadSession = useRef(false);
  hadSession.current ||= session !== null;
  return (
    <Page title={t("title")} banner={<HeldOrders />} ownHeading={session !== null}>
      {session === null
        ? <div class="card"><p>{hadSession.current ? words.t("sign-in-ended") : t("sign-in-first")}</p><SignInButton role="buyers" /></div>
        : <OrderTickets />}
    </Page>
  );
}

/** Milliseconds between requests while an order is not paid, or its codes did not come. */
const POLL_MS = 5_000;

function OrderTickets() {
  const waits = useRef(false);
  const { data, failure, reload } = useLoaded(async () => {
    const loaded = await load();
    waits.current = loaded.order.state === "pending" || loaded.failure !== null;
    return loaded;
  }, null, []);
  useEffect(() => {
    const timer = setInterval(() => waits.current && !document.hidden && void reload(), POLL_MS);
    const shown = (event: PageTransitionEvent) => event.persisted && void reload();
    addEventListener("pageshow", shown);
    return () => {
      clearInterval(timer);
      removeEventListener("pageshow", shown);
    };
  }, [reload]);
  if (data === null) {
    return <><h1>{t("title")}</h1>{failure === null ? <Loading /> : <Problem problem={failure} retry={() => void reload()} />}</>;
  }
  return <Sheet {...data} reload={reload} />;
}

function Sheet({ order, codes, failure, reload }: Loaded & { readonly reload: () => Promise<void> }) {
  const names = useNames(order.sale);
  const tickets = ticketsOf(order, codes);
  const hasTickets = order.state === "paid" || order.state === "refund_due" || order.state === "refunded";
  return (
    <>
      <p class="back"><a href={href(`/my/orders#order-${order.order}`)}>← {t("back-to-orders")}</a></p>
      <h1>{names.title}</h1>
      <div class="row bar">
        <p class="hint">{words.t("order-number", { order: order.order })} · {words.tn("tickets", tickets.length)} <State order={order} /></p>
        {order.state === "paid" && <button type="button" onClick={() => print()}>{t("print")}</button>}
      </div>
      {order.state === "paid" && codes !== null && <><p class="notice screen">{t("hint")}</p><p class="paper">{t("hint-print")}</p></>}
      {failure !== null && <Problem problem={failure} text={t("code-lost")} retry={() => void reload()} />}
      {hasTickets
        ? <ol class="tickets">{tickets.map((ticket) => <Ticket key={ticket.number} ticket={ticket} names={names} order={order} count={tickets.length} />)}</ol>
        : <div class="card">
            <p>{order.state === "pending" ? t("no-tickets.pending") : t("no-tickets.other", { state: stateWord(order, clock.nowMs()) })}</p>
            <a class="button" href={href(order.state === "pending" ? `/checkout/${order.order}` : `/my/orders#order-${order.order}`)}>{t("to-order")}</a>
          </div>}
    </>
  );
}

interface TicketProps {
  readonly ticket: ShownTicket;
  readonly names: Names;
  readonly order: Order;
  readonly count: number;
}

function Ticket({ ticket, names, order, count }: TicketProps) {
  const { number, seat, tier, from, to, attendee, state, isReissued, code, checkedInAt } = ticket;
  return (
    <li class={`ticket ${state}`}>
      <div class="what">
        <p class="event">{names.title}</p>
        <dl>
          <div class="where"><dt>{words.t("seat")}</dt><dd>{seat}</dd></div>
          <div><dt>{t("tier")}</dt><dd>{names.tier(tier)}</dd></div>
          {from !== null && to !== null && <div><dt>{t("train")}</dt><dd>{words.t("journey", { from: names.stop(from), to: names.stop(to) })}</dd></div>}
          {attendee !== null && <div><dt>{t("attendee")}</dt><dd>{attendee}</dd></div>}
        </dl>
        {isReissued && state !== "revoked" && <p class="hint small">{t("reissued")}</p>}
        <p class="hint small">{words.t("order-number", { order: order.order })} · {t("ticket-of", { number, count })}</p>
      </div>
      <div class="code">
        <p class="mark"><span class={ticketLook(state)}>{ticketWord(state)}</span></p>
        {state === "revoked" && <p class="why">{t("void-text")}</p>}
        {state === "checked-in" && <p class="why">{checkedInAt === null ? "" : t("used-text", { time: shortDateTime(checkedInAt) })}</p>}
        {state !== "revoked" && code !== null && (
          <>
            <Qr code={code} label={t("code-alt", { seat })} />
            <details><summary>{t("code-text")}</summary><code>{code}</code></details>
          </>
        )}
        {state === "valid" && code === null && <div class="no-code" aria-hidden="true"><span>QR</span></div>}
      </div>
    </li>
  );
}

void start(<Tickets />, { needsSession: true });
