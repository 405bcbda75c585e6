/** The operators' routes, and what their answers look like. */
import { ask, OnsaleProblem, type Schemas } from "../shared/api.ts";
import { session } from "../shared/session.ts";

/** What a session may be allowed to do. */
export type Right = "watch" | "operate" | "refund";

/**
 * True if the session's scopes have a right. An issuer that names no scopes granted what was asked for; either way the
 * API decides, and this is for what is shown.
 */
export function allows(scope: string, right: Right): boolean {
  return scope.trim() === "" || scope.split(/\s+/).includes(`onsale/${right}`);
}

/** True if whoever is signed in has a right. */
export const may = (right: Right): boolean => {
  const current = session("operators");
  return current !== null && allows(current.scope, right);
};

/** A tier on the board. */
export interface BoardTier {
  readonly tier: string;
  readonly name: string;
  readonly seats: number;
  /** Free seats, on a train those that are free on the whole journey; absent while the sale is not loaded. */
  readonly available?: number;
  /** Tickets that were sold and not refunded. */
  readonly sold?: number;
  readonly revenue_minor?: number;
}

/** A sale live. What counters do not have is absent. */
export interface Board {
  readonly sale: string;
  readonly as_of: string;
  readonly state: Schemas["Phase"];
  readonly currency: string;
  readonly room: Schemas["Document"] | null;
  readonly tiers: readonly BoardTier[];
  readonly orders?: Readonly<Partial<Record<"pending" | "paid" | "cancelled" | "expired" | "refunded", number>>>;
}

/** What an operator did. */
export interface Action {
  readonly at: string;
  readonly who: string;
  readonly action: string;
  readonly sale?: string;
  readonly order?: string;
  readonly detail?: string;
  /** How the operator was known: `iam` or `issuer`. */
  readonly way?: string;
  /** `done`, or the type of the problem; absent while nobody knows. */
  readonly outcome?: string;
}

/** What is past its bound, and what no consumer could handle. */
export interface Stuck {
  readonly overdue: number;
  readonly oldest_due_at?: string;
  readonly dead_letters: Readonly<Record<string, number>>;
}

/** A command to a waiting room. */
export type Command =
  | { readonly command: "pause" | "resume" | "close" }
  | { readonly command: "rate"; readonly rate?: number }
  | { readonly command: "notice"; readonly notice?: string }
  | { readonly command: "sold_out"; readonly sold_out: boolean };

const role = "operators" as const;
const get = async <T>(path: string): Promise<T> => (await ask(path, { role })).json() as Promise<T>;
const send = async <T>(method: "PUT" | "POST", path: string, body?: unknown): Promise<T> => {
  const init = body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  return (await ask(path, { role, method, ...init })).json() as Promise<T>;
};
const segment = encodeURIComponent;

/** The routes by what they do. Each throws an {@link OnsaleProblem}. */
export const routes = {
  board: (sale: string) => get<Board>(`/operator/sales/${segment(sale)}/board`),
  command: (sale: string, command: Command) => send<Schemas["Document"]>("POST", `/operator/sales/${segment(sale)}/room/commands`, command),
  publish: (sale: string, file: string) => send<Schemas["SaleReply"]>("PUT", `/operator/sales/${segment(sale)}`, file),
  actions: (before: string | null) =>
    get<{ actions: readonly Action[]; next?: string }>(`/operator/actions${before === null ? "" : `?before=${segment(before)}`}`),
  stuck: () => get<Stuck>("/operator/stuck"),
  find: (query: Readonly<Record<string, string>>) =>
    get<{ orders: readonly FoundOrder[]; next?: string }>(`/operator/orders?${new URLSearchParams(query).toString()}`),
  order: async (order: string) => orderFrom(await get<OrderAnswer>(`/operator/orders/${segment(order)}`)),
  cancel: (order: string) => send<Schemas["OrderReply"]>("POST", `/operator/orders/${segment(order)}/cancel`),
  refund: (order: string, body: RefundBody) => send<Schemas["OrderRefund"]>("POST", `/operator/orders/${segment(order)}/refunds`, body),
};

/** An order as operators see it: with its buyer. */
export type FoundOrder = Schemas["OrderReply"] & { readonly buyer?: string };
/** A refund as operators see it: with its reason. */
export type DeskRefund = Schemas["OrderRefund"] & { readonly reason?: string; readonly refusal?: string };

/** A step in the history of an order. */
export interface Step {
  readonly number: number;
  readonly kind: string;
  readonly at: string;
  readonly by?: string;
  readonly payment?: string;
  readonly amount_minor?: number;
  readonly currency?: string;
  readonly refund?: number;
}

/** An operator's refund. */
export interface RefundBody {
  readonly number: number;
  readonly tickets: "all" | readonly Schemas["TicketName"][];
  readonly amount_minor?: number;
  readonly currency?: string;
  readonly reason?: string;
}

interface OrderAnswer {
  readonly order: FoundOrder;
  readonly buyer?: string;
  readonly payments?: readonly Schemas["PaymentReply"][];
  readonly refunds?: readonly DeskRefund[] | { readonly refunds: readonly DeskRefund[]; readonly next?: number };
  readonly next?: number;
  readonly history?: readonly Step[];
}

/** An order with everything that happened to it. */
export interface DeskOrder {
  readonly order: FoundOrder;
  readonly payments: readonly Schemas["PaymentReply"][];
  readonly refunds: readonly DeskRefund[];
  readonly history: readonly Step[];
  /** The number that the next refund has; null if there can be none. */
  readonly next: number | null;
}

/** The most refunds of an order. */
const MOST_REFUNDS = 50;

/** An order from its answer. Refunds are numbered without a gap, so that the next number follows from the last. */
export function orderFrom(answer: OrderAnswer): DeskOrder {
  const { payments, refunds = [], history = [], buyer = answer.order.buyer } = answer;
  const order: FoundOrder = buyer === undefined ? answer.order : { ...answer.order, buyer };
  const list = "refunds" in refunds ? refunds.refunds : refunds;
  const last = Math.max(order.refunds?.made ?? 0, ...list.map(({ number }) => number));
  return { order, payments: payments ?? order.payments ?? [], refunds: list, history, next: last < MOST_REFUNDS ? last + 1 : null };
}

/** A page of a sale's orders as CSV, and where the next begins. */
async function csvPage(sale: string, cursor: string | null): Promise<{ text: string; next: string | null }> {
  const response = await ask(`/operator/sales/${segment(sale)}/orders.csv${cursor === null ? "" : `?cursor=${segment(cursor)}`}`, { role, headers: { Accept: "text/csv" } });
  return { text: await response.text(), next: response.headers.get("X-Next-Cursor") };
}

/** The most pages of an export: a limit on a loop that the server ends. */
const MOST_PAGES = 100_000;

/**
 * All orders of a sale as one CSV text, in parts. `onPage` is told how many lines there are so far.
 *
 * @throws {OnsaleProblem} if a page was refused.
 */
export async function exportOrders(
  sale: string, onPage: (lines: number) => void, page: typeof csvPage = csvPage, signal?: AbortSignal,
): Promise<string[]> {
  const parts: string[] = [];
  let cursor: string | null = null;
  let lines = 0;
  for (let count = 0; count < MOST_PAGES && signal?.aborted !== true; count += 1) {
    const { text, next } = await page(sale, cursor);
    const part = parts.length === 0 ? text : withoutHeader(text, parts[0] ?? "");
    parts.push(part === "" || part.endsWith("\n") ? part : `${part}\r\n`);
    lines += part.split("\n").length - 1;
    onPage(Math.max(0, lines - 1));
    if (next === null || next === "" || next === cursor) {
      return parts;
    }
    cursor = next;
  }
  throw OnsaleProblem.withoutAnswer("the export has not come to its end");
}

/** A later page without its heading, if it has that of the first. */
function withoutHeader(text: string, first: string): string {
  const end = text.indexOf("\n") + 1;
  return end > 0 && first.startsWith(text.slice(0, end)) ? text.slice(end) : text;
}
