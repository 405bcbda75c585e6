/** `/s/{sale}/seats`: tickets are chosen and held here. */
import { lazy, Suspense } from "preact/compat";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import "./seats.css";
// Of the dialog of an exchange: what is loaded later brings no styles.
import "../order/confirm.css";
import type { FileForMap } from "../map/plan.ts";
import type { Availability } from "../map/state.ts";
import { everyone, problem, reply } from "../shared/api.ts";
import type { Answer } from "../shared/challenge.tsx";
import { clock } from "../shared/clock.ts";
import { dateTime, money } from "../shared/format.ts";
import { useLoaded, useSession } from "../shared/hooks.ts";
import { goTo, href } from "../shared/language.ts";
import { Loading, Page, Problem, start } from "../shared/layout.tsx";
import { announce } from "../shared/live.ts";
import { type Exchange, keepExchange, keptExchange } from "../order/exchange.ts";
import { HeldOrders } from "../order/held-orders.tsx";
import { namesOf } from "../order/sale.ts";
import { shortWhen, WhenWhere } from "../order/when-where.tsx";
import { newestOrders } from "../order/newest.ts";
import { keptPlace } from "../shared/place.ts";
import { parameter } from "../shared/route.ts";
import { SaleNotice } from "../shared/sale-notice.tsx";
import { seatText } from "../shared/seat-place.ts";
import { session as sessionOf } from "../shared/session.ts";
import { signIn } from "../shared/sign-in.ts";
import { getJson, isForgetful, setJson, tabStore } from "../shared/storage.ts";
import { Attendees } from "./attendees.tsx";
import { BestForm } from "./best-form.tsx";
import { type Choice, type Journey, type Terms, type Way, faultOf, linesOf, mostTickets, readChoice, ticketsIn } from "./choice.ts";
import { JourneyForm, journeyOf } from "./journey.tsx";
import { type Sale, priceOf } from "./labels.ts";
import { Progress, Result, Summary, faultText } from "./order-panel.tsx";
import { type Outcome, type Step, findOut, isOpen, orderLines } from "./ordering.ts";
import { PatternForm, hasLetters } from "./pattern-form.tsx";
import { surroundings } from "./surroundings.ts";
import { Turn } from "./turn.tsx";
import { words } from "./words.ts";

const { t, tn } = words;
/** What is loaded once it is needed. */
const later = () => import("./later.ts");
const MapWay = lazy(() => later().then((module) => module.MapWay));
const ExchangeDialog = lazy(() => later().then((module) => module.ExchangeDialog));

const SALE = parameter("/s/{sale}/seats", "sale");
const CHOICE = `onsale.choice.${SALE}`;
const LAST_ORDER = `onsale.last-order.${SALE}`;

function wayOf(search: string, sale: Sale): Way {
  const way = new URLSearchParams(search).get("way");
  if (way === "map") return "map";
  return way === "pattern" && sale.file.tiers.some(hasLetters) ? "pattern" : "best";
}

/** The choice of this tab, kept as it changes; the way also stands in the address. */
function useChoice(sale: Sale): readonly [Choice, (change: Partial<Choice>) => void] {
  const [choice, setChoice] = useState<Choice>(() => {
    const kept = readChoice(getJson(tabStore, CHOICE));
    const journey = journeyOf(sale, location.search, kept.journey);
    const first = sale.file.tiers.find((tier) => priceOf(tier, journey) !== null);
    const isThere = sale.file.tiers.some((tier) => tier.tier === kept.tier);
    const count = Math.min(kept.count, Math.max(1, Math.min(sale.file.limit_per_buyer, 10)));
    return { ...kept, journey, way: wayOf(location.search, sale), count, tier: isThere ? kept.tier : first?.tier ?? "" };
  });
  const change = useCallback((change: Partial<Choice>) => setChoice((before) => ({ ...before, ...change })), []);
  useEffect(() => setJson(tabStore, CHOICE, choice), [choice]);
  useEffect(() => {
    const back = (): void => change({ way: wayOf(location.search, sale), journey: journeyOf(sale, location.search, null) });
    addEventListener("popstate", back);
    return () => removeEventListener("popstate", back);
  }, [sale]);
  return [choice, change];
}

/** An address of this page with other parameters. */
function withQuery(values: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) query.set(name, value);
  return href(`${location.pathname}?${query}`);
}

/** What is left, asked for once by journey; the map asks more often. */
function useAvailability(sale: Sale, journey: Journey | null) {
  const [availability, setAvailability] = useState<Availability | null>(null);
  const query = journey === null ? {} : { from: journey.from, to: journey.to };
  const load = (): Promise<Availability> => reply(everyone.GET("/sales/{sale}/availability", { params: { path: { sale: sale.sale }, query } })) as Promise<Availability>;
  const loaded = useLoaded(load, null, [journey?.from, journey?.to]);
  useEffect(() => setAvailability(null), [journey?.from, journey?.to]);
  useEffect(() => setAvailability(loaded.data), [loaded.data]);
  const isOfJourney = availability !== null && (journey === null || (availability.from === journey.from && availability.to === journey.to));
  return { availability: isOfJourney ? availability : null, setAvailability, reload: loaded.reload, failure: loaded.failure };
}

/** How many more tickets the buyer may have; null if nobody knows. */
function useRemaining(sale: string, token: string | undefined): number | null {
  const [remaining, setRemaining] = useState<number | null>(null);
  useEffect(() => {
    if (token === undefined) {
      setRemaining(null);
      return;
    }
    newestOrders().then(
      ({ allowances }) => setRemaining(allowances.find((one) => one.sale === sale)?.remaining ?? null),
      () => setRemaining(null),
    );
  }, [sale, token]);
  return remaining;
}

/** What is under way, or what came of it. */
type Going = { readonly kind: "idle" } | { readonly kind: "running"; readonly step: Step } | { readonly kind: "leaving" } | { readonly kind: "over"; readonly outcome: Outcome };

/** Orders, and finds out about an order whose answer was lost. */
function useOrdering(sale: Sale, onTaken: (seats: readonly string[]) => void) {
  const [going, setGoing] = useState<Going>({ kind: "idle" });
  const stop = useRef(new AbortController());
  const around = (): ReturnType<typeof surroundings> => {
    stop.current.abort();
    stop.current = new AbortController();
    return surroundings(sale.sale, sale.file.room !== undefined && sale.file.room !== null, stop.current.signal, (step) => setGoing({ kind: "running", step }));
  };
  const run = async (attempt: () => Promise<Outcome>): Promise<void> => {
    setGoing({ kind: "running", step: { kind: "admission" } });
    const outcome = await attempt().catch((thrown: unknown): Outcome => ({ kind: "refused", problem: problem(thrown) }));
    if (outcome.kind === "ordered") {
      tabStore.set(LAST_ORDER, outcome.order);
      keepExchange(sale.sale, null);
      setGoing({ kind: "leaving" });
      announce(outcome.wasEarlier ? t("earlier-order") : t("step.leaving"));
      goTo(`/checkout/${outcome.order}`);
      return;
    }
    if (outcome.kind === "taken") onTaken(outcome.seats);
    setGoing({ kind: "over", outcome });
  };
  useEffect(() => {
    // Whoever comes back by the back button finds the page as it was left.
    const shown = (event: PageTransitionEvent): void => {
      if (event.persisted) setGoing({ kind: "idle" });
    };
    addEventListener("pageshow", shown);
    return () => removeEventListener("pageshow", shown);
  }, []);
  const isUnknown = isOpen({ kept: () => getJson(tabStore, `onsale.attempt.${sale.sale}`) });
  return {
    going, isUnknown,
    order: (choice: Choice, columns: readonly (string | null)[], answer: Answer | undefined, exchange: Exchange | null) => run(() => {
      const given = exchange === null ? undefined : { order: exchange.order, tickets: exchange.tickets };
      return orderLines(around(), linesOf(choice, columns), answer, given);
    }),
    findOut: () => run(() => findOut(around())),
    stop: () => stop.current.abort(),
  };
}

function Seats() {
  const { data, failure, reload } = useLoaded(() => reply(everyone.GET("/sales/{sale}", { params: { path: { sale: SALE } } })) as Promise<Sale>, null, []);
  if (data === null) {
    return (
      <Page title={t("title")}>
        {failure === null ? <Loading />
          : failure.slug === "not-found" ? <><p class="problem">{t("not-found")}</p><p><a class="button" href={href("/")}>{t("start")}</a></p></>
            : <Problem problem={failure} retry={() => void reload()} />}
      </Page>
    );
  }
  return <Page title={t("title-of", { title: data.title })} banner={<HeldOrders />}><When sale={data} /><SaleNotice notice={data.file.notice} /><Shop sale={data} /></Page>;
}

/** Day and place of an event; the times of a train stand with its stops. */
function When({ sale }: { readonly sale: Sale }) {
  const names = namesOf(sale.sale, sale);
  return names.timetable === null ? <WhenWhere names={names} lines={[]} /> : <p class="when-line">{shortWhen(sale)}</p>;
}

/** Why nothing is sold now, in words; null if it is. */
function closedText(sale: Sale): string | null {
  if (sale.state === "open") return null;
  // The answer may be a second old; the opening is by the server's clock.
  if (sale.state === "upcoming" && Date.parse(sale.opens_at) <= clock.nowMs()) return null;
  return t(`state.${sale.state}`, { at: dateTime(sale.opens_at) });
}

/** Renders again when the sale opens, by the server's clock. */
function useOpening(sale: Sale): void {
  const [, setOpened] = useState(false);
  useEffect(() => {
    const ms = Date.parse(sale.opens_at) - clock.nowMs();
    // Timers take no longer times than 24 days.
    if (sale.state !== "upcoming" || !(ms > 0 && ms < 2 ** 31)) return undefined;
    const timer = setTimeout(() => setOpened(true), ms + 200);
    return () => clearTimeout(timer);
  }, [sale]);
}

/** A choice that is exchanged for once that is confirmed; perhaps the answer to a challenge goes with it. */
interface Asked {
  readonly choice: Choice;
  readonly answer: Answer | undefined;
}

/** What a shop knows and does: the choice, the terms for this buyer, what was lost, what is under way. */
function useShop(sale: Sale) {
  const [choice, onChoice] = useChoice(sale);
  const signedIn = useSession("buyers");
  const remaining = useRemaining(sale.sale, signedIn?.token);
  const { availability, setAvailability, reload } = useAvailability(sale, choice.journey);
  const [lost, setLost] = useState<ReadonlySet<string>>(new Set());
  const [fault, setFault] = useState<string | null>(null);
  const [exchange, setExchange] = useState(() => keptExchange(sale.sale));
  const [review, setReview] = useState<Asked | null>(null);
  const confirmed = useRef<Choice | null>(null);
  useEffect(() => {
    if (exchange !== null) later().catch(() => {});
  }, []);
  const noExchange = (): void => {
    keepExchange(sale.sale, null);
    setExchange(null);
  };
  const taken = (seats: readonly string[]): void => {
    setLost((before) => new Set([...before, ...seats]));
    const labels = choice.seats.filter((one) => seats.includes(one.seat)).map((one) => t("lost-one", { seat: one.label }));
    announce(labels.join(" "));
  };
  const ordering = useOrdering(sale, taken);
  const { going } = ordering;
  const isBusy = going.kind === "running" || going.kind === "leaving";
  const terms: Terms = {
    limitPerBuyer: sale.file.limit_per_buyer, remaining, isOneTierOnly: sale.file.tiers_apart === true,
    attendees: sale.file.attendees === "required" ? "required" : "optional",
    ...(exchange === null ? {} : { exchanged: exchange.tickets.length }),
  };
  const columns = sale.file.tiers.find((tier) => tier.tier === choice.tier)?.columns ?? [];

  useEffect(() => {
    if (ordering.isUnknown && sessionOf("buyers") !== null) void ordering.findOut();
  }, []);
  const leaveToSignIn = (): void => {
    void signIn("buyers").catch(() => setFault(t("sign-in-failed")));
  };
  /** True if it can be ordered by whoever is signed in; says why if it cannot. */
  const isOrderable = (other: Choice): boolean => {
    const found = other.seats.some((seat) => lost.has(seat.seat)) && other.way === "map" ? "lost" : faultOf(other, terms);
    setFault(found === undefined ? null : faultText(found, terms));
    if (found !== undefined) announce(faultText(found, terms));
    else if (sessionOf("buyers") === null) leaveToSignIn();
    else return true;
    return false;
  };
  const send = (other: Choice, answer: Answer | undefined): void => void ordering.order(other, columns, answer, exchange).then(() => void reload());
  const order = (answer?: Answer, other: Choice = choice): void => {
    if (!isOrderable(other)) return;
    // An answer to a challenge goes on with what was confirmed, and with nothing else.
    if (exchange === null || (answer !== undefined && confirmed.current === other)) send(other, answer);
    else setReview({ choice: other, answer });
  };
  const confirm = ({ choice: other, answer }: Asked): void => {
    setReview(null);
    if (!isOrderable(other)) return;
    confirmed.current = other;
    send(other, answer);
  };
  const change = (part: Partial<Choice>): void => {
    setFault(null);
    onChoice(part);
  };
  const toWay = (way: Way): void => {
    if (way === choice.way) return;
    history.pushState(null, "", withQuery({ way }));
    change({ way });
  };
  const toJourney = (journey: Journey): void => {
    history.replaceState(null, "", withQuery({ from: journey.from, to: journey.to }));
    change({ journey });
  };
  return { choice, change, toWay, toJourney, terms, availability, setAvailability, lost, setLost, fault, ordering, isBusy, isSignedIn: signedIn !== null, order, exchange, noExchange, review, setReview, confirm };
}

function Shop({ sale }: { readonly sale: Sale }) {
  const shop = useShop(sale);
  useOpening(sale);
  const { choice, change, terms, availability, lost, ordering, isBusy, isSignedIn, order, exchange, noExchange, review } = shop;
  const { going } = ordering;
  const closed = closedText(sale);
  const props = { sale, terms, choice, availability, onChoice: change };
  return (
    <>
      <Turn sale={sale} />
      <Terms sale={sale} terms={terms} isSignedIn={isSignedIn} />
      {exchange !== null && <Exchanging sale={sale} exchange={exchange} onStop={noExchange} />}
      {closed !== null && <p class="notice warn" role="status">{closed}</p>}
      <Notices sale={sale} isUnknown={ordering.isUnknown && !isBusy} isSignedIn={isSignedIn} isIdle={going.kind === "idle"} onFindOut={() => void ordering.findOut()} />
      {isBusy && <Progress step={going.kind === "running" ? going.step : { kind: "order" }} isLeaving={going.kind === "leaving"} onStop={ordering.stop} />}
      {going.kind === "over" && (
        <Result
          sale={sale.sale} outcome={going.outcome} count={ticketsIn(choice)} onAnswer={(answer) => order(answer)}
          onScattered={() => { const scattered = { ...choice, isTogether: false }; change({ isTogether: false }); order(undefined, scattered); }}
          onFindOut={ordering.isUnknown ? () => void ordering.findOut() : null}
        />
      )}
      {choice.journey !== null && <JourneyForm sale={sale} journey={choice.journey} onJourney={shop.toJourney} />}
      {availability !== null && availability.tiers.length === 0 && <p class="notice warn">{t("journey-none")}</p>}
      <Ways sale={sale} way={choice.way} onWay={shop.toWay} />
      <div class={`shop by-${choice.way}`}>
        <div class="choose" role="tabpanel" id="way-panel" aria-labelledby={`way-${choice.way}`} inert={isBusy}>
          {choice.way === "best" && <BestForm {...props} />}
          {choice.way === "pattern" && <PatternForm {...props} />}
          {choice.way === "map" && (
            <Suspense fallback={<Loading />}>
              <MapWay {...props} lost={lost} onLost={shop.setLost} onAvailability={shop.setAvailability} isOrdering={isBusy || ordering.isUnknown} />
            </Suspense>
          )}
          <Attendees {...props} />
        </div>
        <Summary
          sale={sale} choice={choice} lost={lost} isSignedIn={isSignedIn} isDisabled={isBusy || closed !== null} isExchange={exchange !== null} fault={shop.fault}
          onChoice={change} onOrder={() => order()}
        />
      </div>
      {exchange !== null && review !== null && (
        <Suspense fallback={null}>
          <ExchangeDialog sale={sale.sale} choice={review.choice} exchange={exchange} onConfirm={() => shop.confirm(review)} onClose={() => shop.setReview(null)} />
        </Suspense>
      )}
      {isForgetful() && <p class="hint">{t("forgetful")}</p>}
    </>
  );
}

/** What is given for the tickets that are chosen, and how not to. */
function Exchanging({ sale, exchange, onStop }: { readonly sale: Sale; readonly exchange: Exchange; readonly onStop: () => void }) {
  const seats = exchange.tickets.map(({ seat }) => seatText(sale.file as unknown as FileForMap, seat)).join("; ");
  return (
    <div class="notice">
      <p>{tn("exchanging", exchange.tickets.length, { order: exchange.order, seats })}</p>
      <p class="hint">{t("exchanging.money", { worth: money(exchange.worthMinor, sale.file.currency) })}</p>
      <button type="button" onClick={onStop}>{t("exchanging.stop")}</button>
    </div>
  );
}

/** Limits in words. */
function Terms({ sale, terms, isSignedIn }: { readonly sale: Sale; readonly terms: Terms; readonly isSignedIn: boolean }) {
  const hasMore = mostTickets({ ...terms, remaining: null }) < terms.limitPerBuyer;
  return (
    <p class="terms">
      {tn("limit", terms.limitPerBuyer)}
      {hasMore && ` ${t("most-at-once", { count: 10 })}`}
      {isSignedIn && terms.exchanged === undefined && terms.remaining !== null && terms.remaining < terms.limitPerBuyer && ` ${terms.remaining === 0 ? t("remaining-none") : tn("remaining", terms.remaining)}`}
      {terms.isOneTierOnly && ` ${t("one-tier-note")}`}
      {" "}<a href={href(`/s/${encodeURIComponent(sale.sale)}`)}>{t("about-sale")}</a>
    </p>
  );
}

/** What somebody should know before choosing: the room, an answer that is missing. */
function Notices({ sale, isUnknown, isSignedIn, isIdle, onFindOut }: { readonly sale: Sale; readonly isUnknown: boolean; readonly isSignedIn: boolean; readonly isIdle: boolean; readonly onFindOut: () => void }) {
  const needsRoom = sale.file.room !== undefined && sale.file.room !== null && keptPlace(sale.sale)?.place == null;
  return (
    <>
      {needsRoom && <div class="notice"><p>{t("room-first")}</p><p><a class="button" href={href(`/s/${encodeURIComponent(sale.sale)}/room`)}>{t("to-room")}</a></p></div>}
      {isUnknown && isIdle && <div class="notice warn"><p>{t(isSignedIn ? "find-out" : "find-out-sign-in")}</p>{isSignedIn && <button type="button" onClick={onFindOut}>{t("find-out-again")}</button>}</div>}
    </>
  );
}

/** The ways as tabs. */
function Ways({ sale, way, onWay }: { readonly sale: Sale; readonly way: Way; readonly onWay: (way: Way) => void }) {
  const isTrain = (sale.file.stops ?? []).length > 0;
  const ways: Way[] = ["best", ...(isTrain && sale.file.tiers.some(hasLetters) ? ["pattern" as const] : []), "map"];
  const move = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const next = ways[(ways.indexOf(way) + step + ways.length) % ways.length] ?? "best";
    onWay(next);
    document.getElementById(`way-${next}`)?.focus();
  };
  return (
    <div class="ways" role="tablist" aria-label={t("ways")} onKeyDown={move}>
      {ways.map((one) => (
        <button
          type="button" role="tab" id={`way-${one}`} key={one} aria-selected={one === way} tabIndex={one === way ? 0 : -1}
          {...(one === way ? { "aria-controls": "way-panel" } : {})} onClick={() => onWay(one)}
        >{t(one === "map" && isTrain ? "way.map-train" : `way.${one}`)}</button>
      ))}
    </div>
  );
}

void start(<Seats />);
