/**
 * `/my/tickets/{order}`: the tickets of an order, each with its code, to show and to print. Once seen, they are shown without a
 * network too, until their buyer signs out.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import "./tickets.css";
import { aboutOf, useAbout } from "../event/about.ts";
import { State } from "../order/parts.tsx";
import { HeldOrders } from "../order/held-orders.tsx";
import { beforeLong, eventOf, namesReady, saleReply, useNames, type KnownSale, type Names } from "../order/sale.ts";
import { ticketLook, ticketWord } from "../order/ticket-state.ts";
import { mayBeRepeated, stateWord, words } from "../order/words.ts";
import en from "../i18n/tickets.en.json";
import zh from "../i18n/tickets.zh.json";
import { buyer, problem, reply, type OnsaleProblem } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { besideText, eventWords, journeyText, maskedName, textOf, whenText, whereText } from "../shared/event.ts";
import { shortDateTime } from "../shared/format.ts";
import { useLoaded, useReturn, useSession } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { Loading, Page, Problem, SignInButton, start, useTab } from "../shared/layout.tsx";
import { openWithoutNetwork } from "../shared/offline.ts";
import { parameter } from "../shared/route.ts";
import { onSession, signOut, subjectOf, type Session } from "../shared/session.ts";
import { texts } from "../shared/text.ts";
import { AddToCalendar } from "./add-to-calendar.tsx";
import { dropTickets, keepTickets, keptTickets, type KeptTickets } from "./kept.ts";
import { WheelchairSign } from "../shared/wheelchair-sign.tsx";
import { Qr } from "./qr.tsx";
import { codesOf, reasonsOf, ticketsOf, voidKey, type CodedTicket, type ShownTicket, type TicketOrder } from "./ticket.ts";
import { Where } from "./where.tsx";

const { t } = texts(en, zh);
const ORDER = parameter("/my/tickets/{order}", "order");

interface Loaded {
  readonly order: TicketOrder;
  readonly codes: readonly CodedTicket[] | null;
  /** Why tickets became void, by refund. */
  readonly reasons: Awaited<ReturnType<typeof reasonsOf>>;
  /** Why there are no codes though the order has tickets; null if there is no reason to name. */
  readonly failure: OnsaleProblem | null;
  readonly sale: KnownSale | null;
  /** When the API said so, by the server's clock. */
  readonly asOfMs: number;
}

const hasTickets = ({ state }: Pick<TicketOrder, "state">) => state === "paid" || state === "refund_due" || state === "refunded";
/** What tickets are kept by; the tokens of some issuers name nobody. */
const buyerOf = (session: Session) => subjectOf(session.token) ?? "";
const NO_REASONS: Loaded["reasons"] = new Map();

async function load(): Promise<Loaded> {
  const [order, codes] = await Promise.allSettled([reply(buyer.GET("/orders/{order}", { params: { path: { order: ORDER } } })), codesOf(ORDER)]);
  if (order.status === "rejected") {
    throw problem(order.reason);
  }
  const asOfMs = clock.nowMs();
  const address = saleReply(order.value.sale).then((sale) => aboutOf(eventOf(sale)));
  const [reasons] = await Promise.all([reasonsOf(order.value).catch(() => NO_REASONS), namesReady([order.value.sale]), beforeLong(address.catch(() => null))]);
  const loaded = { order: order.value, reasons, sale: null, asOfMs };
  return codes.status === "fulfilled" ? { ...loaded, codes: codes.value, failure: null } : { ...loaded, codes: null, failure: problem(codes.reason) };
}

/** Keeps what was loaded on this device; true once the page opens without a network too. */
async function keepLoaded(of: string, { order, codes, asOfMs }: Loaded): Promise<boolean> {
  if (codes === null || !hasTickets(order)) return false;
  const sale = await saleReply(order.sale).catch(() => null);
  const about = sale === null ? null : await aboutOf(eventOf(sale)).catch(() => null);
  return (await keepTickets(of, { order, codes, sale: sale && { ...sale, address: about?.address ?? null }, asOfMs })) && (await openWithoutNetwork("/my/tickets/")) === "yes";
}

/** The tickets as they are kept on this device; undefined while they are looked for. */
function useKept(of: string | null): KeptTickets | null | undefined {
  const [kept, setKept] = useState<KeptTickets | null | undefined>(undefined);
  useEffect(() => {
    let isOver = false;
    const look = () => void keptTickets(of, ORDER).then((found) => isOver || setKept(found));
    look();
    const stop = onSession(look);
    return () => {
      isOver = true;
      stop();
    };
  }, [of]);
  return kept;
}

function Tickets() {
  const session = useSession("buyers");
  const hadSession = useRef(false);
  hadSession.current ||= session !== null;
  const kept = useKept(session === null ? null : buyerOf(session));
  const isShown = session !== null || kept !== null;
  return (
    <Page title={t("title")} banner={<HeldOrders />} ownHeading={isShown}>
      {session !== null ? <OrderTickets kept={kept} session={session} />
        : kept === undefined ? <><h1>{t("title")}</h1><Loading /></>
          : kept === null ? <div class="card"><p>{hadSession.current ? words.t("sign-in-ended") : t("sign-in-first")}</p><SignInButton role="buyers" /></div>
            : <Sheet {...kept} reasons={NO_REASONS} failure={null} isOld notice={<SignInAgain />} />}
    </Page>
  );
}

/** Milliseconds between requests while an order is not paid, or something did not come. */
const POLL_MS = 5_000;
/** Milliseconds that an answer is waited for before what is kept is shown. */
const PATIENCE_MS = 2_000;

function OrderTickets({ kept, session }: { readonly kept: KeptTickets | null | undefined; readonly session: Session }) {
  const of = buyerOf(session);
  const waits = useRef(false);
  const [isKept, setIsKept] = useState(false);
  const { data, failure, reload } = useLoaded(async () => {
    try {
      const loaded = await load();
      waits.current = loaded.order.state === "pending" || loaded.failure !== null;
      void keepLoaded(of, loaded).then(setIsKept, () => {});
      return loaded;
    } catch (thrown) {
      const why = problem(thrown);
      waits.current = mayBeRepeated(why);
      // The API is asked and says no: what is kept of such an order is nobody's here.
      if (why.slug === "not-found") await dropTickets(of, ORDER).catch(() => {});
      throw why;
    }
  }, null, [of]);
  useReturn(() => void reload());
  useEffect(() => {
    const timer = setInterval(() => waits.current && !document.hidden && void reload(), POLL_MS);
    return () => clearInterval(timer);
  }, [reload]);
  const isPatient = useFor(PATIENCE_MS);
  if (data !== null) {
    // Codes that do not come now are as good as they were; what the order says is void is void.
    return <Sheet {...data} sale={kept?.sale ?? null} codes={data.codes ?? kept?.codes ?? null} isOld={failure !== null} isKept={isKept} reload={reload} />;
  }
  if (kept != null && (failure !== null ? mayBeRepeated(failure) : !isPatient)) {
    return <Sheet {...kept} reasons={NO_REASONS} failure={null} isOld />;
  }
  return <><h1>{t("title")}</h1>{failure === null ? <Loading /> : <Problem problem={failure} retry={() => void reload()} />}</>;
}

/** True at first, and false once `ms` milliseconds have passed. */
function useFor(ms: number): boolean {
  const [is, setIs] = useState(true);
  useEffect(() => {
    const timer = setTimeout(() => setIs(false), ms);
    return () => clearTimeout(timer);
  }, []);
  return is;
}

/** Nobody is signed in: what is kept may be brought up to date, or taken away. */
function SignInAgain() {
  return (
    <div class="row kept">
      <SignInButton role="buyers" quiet label={t("kept-sign-in")} />
      <button type="button" class="quiet" onClick={() => signOut("buyers")}>{t("kept-remove")}</button>
    </div>
  );
}

interface SheetProps extends Loaded {
  /** True if there may be news that this page does not have. */
  readonly isOld?: boolean;
  /** True if the page opens without a network from now on. */
  readonly isKept?: boolean;
  readonly notice?: ComponentChildren;
  readonly reload?: () => Promise<void>;
}

function Sheet({ order, codes, reasons, failure, sale, asOfMs, isOld = false, isKept = false, notice, reload }: SheetProps) {
  const names = useNames(order.sale, sale);
  useTab(names.title);
  const about = useAbout(names.event);
  const address = textOf(about?.address ?? sale?.address);
  const tickets = ticketsOf(order, codes);
  return (
    <>
      <p class="back"><a href={href(`/my/orders#order-${order.order}`)}>← {t("back-to-orders")}</a></p>
      <h1>{names.title}</h1>
      {isOld && <div class="notice warn screen" role="status"><p>{t("as-of", { time: shortDateTime(asOfMs) })}</p>{notice}</div>}
      <div class="row bar">
        <p class="hint">{words.t("order-number", { order: order.order })} · {words.tn("tickets", tickets.length)} <State order={order} /></p>
        {order.state === "paid" && <p class="row tools"><AddToCalendar order={order} names={names} address={address} /><button type="button" onClick={() => print()}>{t("print")}</button></p>}
      </div>
      {order.state === "paid" && codes !== null && <><p class="notice screen">{t("hint")}</p><p class="paper">{t("hint-print")}</p></>}
      {failure !== null && <Problem problem={failure} text={t("code-lost")} {...(reload === undefined ? {} : { retry: () => void reload() })} />}
      {hasTickets(order)
        ? <ol class="tickets">{tickets.map((ticket) => <Ticket key={ticket.number} ticket={ticket} names={names} address={address} order={order} count={tickets.length} reasons={reasons} />)}</ol>
        : <div class="card">
            <p>{order.state === "pending" ? t("no-tickets.pending") : t("no-tickets.other", { state: stateWord(order, clock.nowMs()) })}</p>
            <a class="button" href={href(order.state === "pending" ? `/checkout/${order.order}` : `/my/orders#order-${order.order}`)}>{t("to-order")}</a>
          </div>}
      {isKept && <p class="hint screen kept-here">{t("kept")}</p>}
    </>
  );
}

interface TicketProps {
  readonly ticket: ShownTicket;
  readonly names: Names;
  /** The postal address of the venue. */
  readonly address: string | null;
  readonly order: TicketOrder;
  readonly count: number;
  /** Why tickets became void, by refund. */
  readonly reasons: Loaded["reasons"];
}

function Ticket({ ticket, names, address, order, count, reasons }: TicketProps) {
  const { number, seat, tier, from, to, attendee, state, isReissued, code, checkedInAt, refund } = ticket;
  return (
    <li class={`ticket ${state}`}>
      <div class="what">
        <p class="event">{names.title}</p>
        {names.timetable === null ? <WhenWhereOf names={names} address={address} /> : from !== null && to !== null && <JourneyOf names={names} from={from} to={to} />}
        <Where seat={seat} names={names} />
        <dl>
          <div><dt>{t("tier")}</dt><dd><WheelchairSign of={names.tier(tier)} />{names.tier(tier)}</dd></div>
          {names.timetable === null && from !== null && to !== null && <div><dt>{t("train")}</dt><dd>{words.t("journey", { from: names.stop(from), to: names.stop(to) })}</dd></div>}
          {attendee !== null && <div><dt>{t("attendee")}</dt><dd>{maskedName(attendee)}</dd></div>}
        </dl>
        {isReissued && state !== "revoked" && <p class="hint small">{t("reissued")}</p>}
        <p class="hint small">{words.t("order-number", { order: order.order })} · {t("ticket-of", { number, count })}</p>
      </div>
      <div class="code">
        <p class="mark"><span class={ticketLook(state)}>{ticketWord(state)}</span></p>
        {state === "revoked" && <p class="why">{t(voidKey(refund, reasons))}</p>}
        {state === "checked-in" && <p class="why">{checkedInAt === null ? "" : t("used-text", { time: shortDateTime(checkedInAt) })}</p>}
        {state !== "revoked" && code !== null && (
          <>
            <Qr code={code} label={t("code-alt", { seat: names.seat(seat) })} />
            <details><summary>{t("code-text")}</summary><code>{code}</code></details>
          </>
        )}
        {state === "valid" && code === null && <div class="no-code" aria-hidden="true"><span>QR</span></div>}
      </div>
    </li>
  );
}

/** Day, hour, doors, venue and address. */
function WhenWhereOf({ names: { event }, address }: { readonly names: Names; readonly address: string | null }) {
  const [when, where] = [whenText(event?.starts_at, event?.time_zone), whereText(event?.venue)];
  const doors = besideText(event?.doors_at, event?.starts_at, event?.time_zone);
  return (
    <>
      {when !== null && <p class="when"><time dateTime={event?.starts_at ?? ""}>{when}</time></p>}
      {doors !== null && <p class="when"><time dateTime={event?.doors_at ?? ""}>{eventWords.t("doors.at", { time: doors })}</time></p>}
      {(where !== null || address !== null) && <p class="venue">{where !== null && <strong>{where}</strong>}{where !== null && address !== null && <br />}{address}</p>}
    </>
  );
}

/** Departure and arrival, each by the clock of its stop. */
function JourneyOf({ names, from, to }: { readonly names: Names; readonly from: string; readonly to: string }) {
  const { departs, arrives } = journeyText(names.timetable ?? {}, from, to);
  return (
    <dl class="ends">
      <div><dt>{eventWords.t("departs")}</dt><dd>{names.stop(from)}{departs !== null && <span>{departs}</span>}</dd></div>
      <div><dt>{eventWords.t("arrives")}</dt><dd>{names.stop(to)}{arrives !== null && <span>{arrives}</span>}</dd></div>
    </dl>
  );
}

void start(<Tickets />, { needsSession: true });
