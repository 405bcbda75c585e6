/** What is chosen, what it costs, and the one button; what is going on while tickets are held; what was refused. */
import { useEffect, useRef } from "preact/hooks";

import type { OnsaleProblem } from "../shared/api.ts";
import { type Answer, ChallengeForm } from "../shared/challenge.tsx";
import { clock } from "../shared/clock.ts";
import { dateTime, duration } from "../shared/format.ts";
import { useNow, useTold } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { problemText } from "../shared/layout.tsx";
import { type Choice, type Fault, MOST_LINES, type Terms, mostTickets, ticketTiers } from "./choice.ts";
import { type Sale, priceOf, priceText } from "./labels.ts";
import type { Outcome, Step } from "./ordering.ts";
import { words } from "./words.ts";

const { t, tn } = words;

/** The price of a choice in minor units; null if a part of it is not sold. */
export function totalOf(sale: Sale, choice: Choice): number | null {
  let total = 0;
  for (const tier of ticketTiers(choice)) {
    const file = sale.file.tiers.find((one) => one.tier === tier);
    const price = file === undefined ? null : priceOf(file, choice.journey);
    if (price === null) return null;
    total += price;
  }
  return total;
}

/** The chosen seats one by one, each with a button that takes it out. */
function ChosenList({ sale, choice, lost, onChoice }: { readonly sale: Sale; readonly choice: Choice; readonly lost: ReadonlySet<string>; readonly onChoice: (change: Partial<Choice>) => void }) {
  const price = (tier: string): string => {
    const file = sale.file.tiers.find((one) => one.tier === tier);
    const minor = file === undefined ? null : priceOf(file, choice.journey);
    return `${file?.name ?? tier}${minor === null ? "" : ` · ${priceText(minor, sale.file.currency)}`}`;
  };
  const spots = Object.entries(choice.spots).filter(([, count]) => count > 0);
  if (choice.seats.length === 0 && spots.length === 0) return <p class="hint nothing">{t("nothing-yet")}</p>;
  return (
    <ul class="chosen">
      {choice.seats.map((seat) => (
        <li key={seat.seat} class={lost.has(seat.seat) ? "lost" : ""}>
          <span>{lost.has(seat.seat) ? <><s>{seat.label}</s> <strong>{t("state-of.lost")}</strong>{" "}<a href="#lost-title">{t("see-offers")}</a></> : seat.label}<span class="hint">{price(seat.tier)}</span></span>
          <button type="button" class="quiet" aria-label={t("remove-seat", { seat: seat.label })} onClick={() => onChoice({ seats: choice.seats.filter((one) => one.seat !== seat.seat) })}>{t("remove")}</button>
        </li>
      ))}
      {spots.map(([tier, count]) => (
        <li key={tier}>
          <span>{tn("tickets", count)}<span class="hint">{price(tier)}</span></span>
          <button type="button" class="quiet" onClick={() => onChoice({ spots: { ...choice.spots, [tier]: 0 } })}>{t("remove")}</button>
        </li>
      ))}
    </ul>
  );
}

/** The words of a fault. */
export function faultText(fault: Fault | "lost", terms: Terms): string {
  switch (fault) {
    case "too-many": return t("fault.too-many", { count: mostTickets(terms) });
    case "too-many-tiers": return t("fault.too-many-tiers", { count: MOST_LINES });
    case "exchange-count": return tn("fault.exchange-count", terms.exchanged ?? 0);
    default: return t(`fault.${fault}`);
  }
}

interface SummaryProps {
  readonly sale: Sale;
  readonly choice: Choice;
  readonly lost: ReadonlySet<string>;
  readonly isSignedIn: boolean;
  readonly isDisabled: boolean;
  /** True if tickets are given for these: a dialog comes first. */
  readonly isExchange: boolean;
  /** Shown once somebody has pressed the button. */
  readonly fault: string | null;
  readonly onChoice: (change: Partial<Choice>) => void;
  readonly onOrder: () => void;
}

/** The bar with the total and the button; it stays in sight. */
export function Summary({ sale, choice, lost, isSignedIn, isDisabled, isExchange, fault, onChoice, onOrder }: SummaryProps) {
  const tickets = ticketTiers(choice).length;
  const total = totalOf(sale, choice);
  return (
    <section class={`summary${tickets === 0 ? " empty" : ""}`} aria-labelledby="summary-title">
      <h2 id="summary-title" class={choice.way === "map" ? "" : "unseen"}>{t("your-choice")}</h2>
      {choice.way === "map" && <ChosenList sale={sale} choice={choice} lost={lost} onChoice={onChoice} />}
      <p class="total"><span>{tn("tickets", tickets)}</span> <strong>{tickets === 0 || total === null || (choice.way !== "map" && choice.tier === "") ? "–" : priceText(total, sale.file.currency)}</strong></p>
      {fault !== null && <p class="problem" role="alert">{fault}</p>}
      <button type="button" class="primary order" disabled={isDisabled} onClick={onOrder}>{t(!isSignedIn ? "sign-in-and-hold" : isExchange ? "review" : "hold")}</button>
      <p class="hint">{isExchange ? t("review.hint") : t("hold-hint", { time: duration(sale.file.pay_window_seconds * 1000) })}</p>
    </section>
  );
}

function stepText(step: Step, nowMs: number): string {
  if (step.kind === "admission" || step.kind === "order") return t(`step.${step.kind}`);
  const seconds = Math.max(0, Math.ceil((step.atMs - nowMs) / 1000));
  if (step.isOrder) return t("step.again-order", { seconds });
  switch (step.slug) {
    case "no-answer": return t("step.no-answer", { seconds });
    case "waiting": return t("step.waiting", { seconds });
    case "room-paused": return t("step.paused", { seconds });
    default: return t("step.again-admission", { seconds });
  }
}

/** What is going on, with a button to stop it. The focus comes here, because the form is out of use meanwhile. */
export function Progress({ step, isLeaving, onStop }: { readonly step: Step; readonly isLeaving: boolean; readonly onStop: () => void }) {
  useNow(500);
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => element.current?.focus(), []);
  const text = isLeaving ? t("step.leaving") : stepText(step, clock.nowMs());
  useTold(isLeaving ? "leaving" : step.kind === "again" ? `again ${step.isOrder || step.slug}` : step.kind, text);
  return (
    <div class="progress card" tabIndex={-1} ref={element}>
      <p class="busy">{text}</p>
      {!isLeaving && <button type="button" onClick={onStop}>{t("stop")}</button>}
    </div>
  );
}

/** A number of a problem's document. */
const numberIn = (problem: OnsaleProblem, member: string): number => Number(problem.document[member] ?? 0);

/** The words of a refusal. */
export function refusedText(problem: OnsaleProblem, count: number): string {
  switch (problem.slug) {
    case "sold-out": return t(problem.text("tier") === null ? "refused.all-sold-out" : "refused.sold-out");
    case "no-adjacent": return tn("refused.no-adjacent", count);
    case "limit-reached": return numberIn(problem, "remaining_allowance") === 0 ? t("remaining-none") : tn("refused.limit-reached", numberIn(problem, "remaining_allowance"));
    case "attendee-taken": return t("refused.attendee-taken", { attendee: problem.text("attendee") ?? "" });
    case "attendee-limit": return t("refused.attendee-limit", { count: numberIn(problem, "max_named") });
    case "one-tier-only": return t("fault.one-tier");
    case "sale-closed": {
      const opens = problem.text("opens_at");
      return opens === null ? t("refused.sale-closed") : t("state.upcoming", { at: dateTime(opens) });
    }
    case "exchange-not-allowed": case "exchange-differs": return t(`refused.${problem.slug}`);
    case "order-not-paid": case "ticket-refunded": case "ticket-checked-in": case "unknown-ticket": case "payment-disputed": return t("refused.exchange-gone");
    case "sale-archived": return t("state.archived");
    case "sale-cancelled": return t("state.cancelled");
    case "departed": case "hold-expired": case "order-resolved": case "not-admitted": case "refused-by-rule": return t(`refused.${problem.slug}`);
    default: return problemText(problem);
  }
}

interface ResultProps {
  readonly sale: string;
  readonly outcome: Outcome;
  readonly count: number;
  readonly onAnswer: (answer: Answer) => void;
  readonly onScattered: () => void;
  readonly onFindOut: (() => void) | null;
}

/** What came of an attempt, other than an order. The focus comes here. */
export function Result({ sale, outcome, count, onAnswer, onScattered, onFindOut }: ResultProps) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (outcome.kind !== "challenge") element.current?.focus();
  }, [outcome]);
  if (outcome.kind === "ordered" || outcome.kind === "taken") return null;
  return (
    <div tabIndex={-1} ref={element} class="result">
      {outcome.kind === "stopped" && <div class="notice" role="status"><p>{t("stopped")}</p>{onFindOut !== null && <><p>{t("find-out")}</p><button type="button" onClick={onFindOut}>{t("find-out-again")}</button></>}</div>}
      {outcome.kind === "challenge" && <ChallengeForm key={"token" in outcome.challenge ? outcome.challenge.token : outcome.challenge.altcha.signature} challenge={outcome.challenge} failed={outcome.failed} onAnswer={onAnswer} />}
      {outcome.kind === "room" && (
        <div class="notice warn" role="alert">
          <p>{roomText(outcome.problem)}</p>
          <p><a class="button primary" href={href(`/s/${encodeURIComponent(sale)}/room`)}>{t("to-room")}</a></p>
        </div>
      )}
      {outcome.kind === "refused" && (
        <div class="problem" role="alert">
          <p>{refusedText(outcome.problem, count)}</p>
          {outcome.problem.slug === "no-adjacent" && <p><button type="button" onClick={onScattered}>{tn("take-scattered", count)}</button></p>}
          {onFindOut !== null && <p><button type="button" onClick={onFindOut}>{t("find-out-again")}</button></p>}
        </div>
      )}
    </div>
  );
}

function roomText(problem: OnsaleProblem): string {
  switch (problem.slug) {
    case "place-required": case "place-not-due": case "place-run-out": case "place-invalid": case "visit-over": case "too-many-attempts":
      return t(`room.${problem.slug}`);
    default: return problemText(problem);
  }
}

