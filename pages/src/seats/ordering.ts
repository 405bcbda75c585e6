/**
 * From a choice to an order: the admission, then the order with it. What was sent is kept in the tab before it is sent,
 * so that a lost answer is found out by the very same request, also after the page was loaded again.
 */
import type { OnsaleProblem, Schemas } from "../shared/api.ts";
import type { Answer, Challenge } from "../shared/challenge.tsx";
import type { ExchangeBody } from "../order/exchange.ts";

/** A line of an order, as the API takes it: exactly one of `seats`, `best` and `pattern`. */
export interface Line {
  readonly tier: string;
  readonly from?: string;
  readonly to?: string;
  readonly seats?: readonly string[];
  readonly best?: { readonly count: number; readonly together: "required" | "preferred" };
  readonly pattern?: readonly { readonly column: string; readonly row: number }[];
  readonly attendees?: readonly string[];
}
/** The body of an order. */
export interface OrderBody {
  readonly admission: string;
  readonly lines: readonly Line[];
  readonly exchange?: ExchangeBody;
}
type Admission = Schemas["AdmissionReply"];
type Order = Schemas["OrderReply"];

/** An admission, and what was sent with it. */
export interface Attempt {
  readonly admission: Admission;
  readonly lines: readonly Line[];
  /** The tickets that are given for these. */
  readonly exchange?: ExchangeBody;
  /** True from the moment that the order is sent until an answer says what became of it. */
  readonly isOpen: boolean;
}

/** How it ended. */
export type Outcome =
  | { readonly kind: "ordered"; readonly order: string; readonly wasEarlier: boolean }
  | { readonly kind: "challenge"; readonly challenge: Challenge; readonly failed: boolean }
  | { readonly kind: "taken"; readonly tier: string; readonly seats: readonly string[] }
  | { readonly kind: "room"; readonly problem: OnsaleProblem }
  | { readonly kind: "refused"; readonly problem: OnsaleProblem }
  | { readonly kind: "stopped" };

/** What is going on. */
export type Step =
  | { readonly kind: "admission" }
  | { readonly kind: "order" }
  /** The same request is sent again at a time by the server's clock. */
  | { readonly kind: "again"; readonly atMs: number; readonly slug: string; readonly isOrder: boolean };

/** What ordering needs of its surroundings. */
export interface Surroundings {
  admit(body: Schemas["AdmissionBody"]): Promise<Admission>;
  order(body: OrderBody): Promise<Order>;
  /** Any failure as a problem. */
  problem(thrown: unknown): OnsaleProblem;
  /** Milliseconds since 1970 by the server's clock. */
  nowMs(): number;
  /** Waits; true if it was not stopped meanwhile. */
  wait(ms: number): Promise<boolean>;
  random(): number;
  keep(attempt: Attempt | null): void;
  kept(): Attempt | null;
  /** The place of the waiting room, if the sale has one. */
  place(): Schemas["PlaceClaim"] | null;
  onStep(step: Step): void;
}

/** Milliseconds before an admission runs out within which it is not used any more. */
const MARGIN_MS = 3_000;
/** Requests that are sent in vain in a row before a person is asked to go on. */
const MOST_REPEATS = 60;

const TICKETS_OF = (line: Line): number => line.seats?.length ?? line.best?.count ?? line.pattern?.length ?? 0;

/** Tickets of lines. */
export const ticketsOf = (lines: readonly Line[]): number => lines.reduce((sum, line) => sum + TICKETS_OF(line), 0);

/** True if the same request may succeed, or it is not known whether it did. */
function mayRepeat(problem: OnsaleProblem): boolean {
  switch (problem.slug) {
    case "no-answer": case "outcome-unknown": case "unavailable": case "internal": case "not-loaded":
    case "waiting": case "too-many-requests": case "room-paused":
      return true;
    default:
      return problem.status >= 500 && problem.slug !== "payment-not-started";
  }
}

function isOfRoom(problem: OnsaleProblem): boolean {
  return ["place-required", "place-not-due", "place-run-out", "place-invalid", "visit-over", "too-many-attempts"].includes(problem.slug);
}

/** Repeats a request while that may help; undefined if it was stopped. */
async function repeated<T>(around: Surroundings, isOrder: boolean, send: () => Promise<T>): Promise<{ reply: T } | { problem: OnsaleProblem } | undefined> {
  for (let failures = 1; ; failures += 1) {
    try {
      return { reply: await send() };
    } catch (thrown) {
      const problem = around.problem(thrown);
      if (!mayRepeat(problem) || failures > MOST_REPEATS) return { problem };
      const least = (problem.retryAfterSeconds ?? 0) * 1000;
      const ms = Math.max(least, Math.min(8_000, 500 * 2 ** Math.min(failures, 4))) + around.random() * 500;
      around.onStep({ kind: "again", atMs: around.nowMs() + ms, slug: problem.slug, isOrder });
      if (!(await around.wait(ms))) return undefined;
      around.onStep({ kind: isOrder ? "order" : "admission" });
    }
  }
}

/** The admission that is kept, if it is still good for so many tickets. */
function usable(around: Surroundings, tickets: number): Admission | undefined {
  const kept = around.kept();
  if (kept === null || kept.isOpen || kept.admission.tickets < tickets) return undefined;
  return Date.parse(kept.admission.expires_at) - MARGIN_MS > around.nowMs() ? kept.admission : undefined;
}

async function admitted(around: Surroundings, tickets: number, answer: Answer | undefined): Promise<Admission | Outcome> {
  const good = usable(around, tickets);
  if (good !== undefined) return good;
  around.onStep({ kind: "admission" });
  const place = around.place();
  const body: Schemas["AdmissionBody"] = {
    tickets, ...(place === null ? {} : { place }), ...(answer === undefined ? {} : { challenge: answer }),
  };
  const result = await repeated(around, false, () => around.admit(body));
  if (result === undefined) return { kind: "stopped" };
  if ("reply" in result) return result.reply;
  const { problem } = result;
  if (problem.slug === "challenge-required" || problem.slug === "challenge-failed") {
    return { kind: "challenge", challenge: problem.document["challenge"] as Challenge, failed: problem.slug === "challenge-failed" };
  }
  return isOfRoom(problem) ? { kind: "room", problem } : { kind: "refused", problem };
}

/** Sends the order of an attempt until it is known what became of it. */
async function settled(around: Surroundings, attempt: Attempt, wasEarlier: boolean): Promise<Outcome> {
  around.keep({ ...attempt, isOpen: true });
  around.onStep({ kind: "order" });
  const body = { admission: attempt.admission.token, lines: attempt.lines, ...(attempt.exchange === undefined ? {} : { exchange: attempt.exchange }) };
  const result = await repeated(around, true, () => around.order(body));
  if (result === undefined) return { kind: "stopped" };
  if ("reply" in result) {
    around.keep(null);
    return { kind: "ordered", order: result.reply.order, wasEarlier };
  }
  const { problem } = result;
  switch (problem.slug) {
    case "seat-taken": {
      around.keep({ ...attempt, isOpen: false });
      const seats = problem.document["seats"];
      return { kind: "taken", tier: problem.text("tier") ?? "", seats: Array.isArray(seats) ? seats.map(String) : [] };
    }
    case "token-reused": {
      const order = problem.text("order");
      around.keep(null);
      return order === null ? { kind: "refused", problem } : { kind: "ordered", order, wasEarlier: true };
    }
    default:
      break;
  }
  switch (problem.admission) {
    case "kept":
      around.keep({ ...attempt, isOpen: false });
      break;
    case "used-up":
      around.keep(null);
      break;
    case "undecided":
      // The same request, sent again, finds out: by whoever signs in again, if nobody was.
      break;
  }
  return { kind: "refused", problem };
}

/** True if an order was sent and nobody knows yet what became of it. */
export const isOpen = (around: Pick<Surroundings, "kept">): boolean => around.kept()?.isOpen === true;

/** Finds out what became of an order whose answer was lost: the same request once more. */
export async function findOut(around: Surroundings): Promise<Outcome> {
  const attempt = around.kept();
  return attempt === null ? { kind: "stopped" } : settled(around, attempt, true);
}

/**
 * Orders lines, perhaps in exchange for other tickets, once it is known what became of those before; `answer` is that to
 * the challenge of the outcome before.
 */
export async function orderLines(around: Surroundings, lines: readonly Line[], answer?: Answer, exchange?: ExchangeBody): Promise<Outcome> {
  if (isOpen(around)) {
    const before = await findOut(around);
    if (before.kind === "ordered" || isOpen(around)) return before;
  }
  for (let tries = 1; ; tries += 1) {
    const admission = await admitted(around, ticketsOf(lines), answer);
    if ("kind" in admission) return admission;
    const outcome = await settled(around, { admission, lines, ...(exchange === undefined ? {} : { exchange }), isOpen: false }, false);
    const isStale = outcome.kind === "refused" && outcome.problem.slug === "not-admitted";
    // An admission that has run out on the way is asked for once more.
    if (!isStale || tries > 1) return outcome;
  }
}
