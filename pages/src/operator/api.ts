/** The operators' routes, by the types of the API's document. */
import type { operations } from "onsale-client";

import { ask, OnsaleProblem, operator, reply, type Schemas } from "../shared/api.ts";
import { session } from "../shared/session.ts";

/** What a session may be allowed to do. */
export type Right = "watch" | "operate" | "refund" | "scan";

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
export type BoardTier = Schemas["BoardTier"];
/** A sale live. The API's document says of the room only that it is the room document. */
export type Board = Omit<Schemas["Board"], "room"> & { readonly room: Schemas["Document"] | null };
/** What an operator did. */
export type Action = Schemas["Action"];
/** What is past its bound, and what no consumer could handle. */
export type Stuck = Schemas["Stuck"];
/** Who is told of facts, and how far. */
export type Webhook = Schemas["WebhookProgress"];
/** What whoever paid has had the bank take back. */
export type Dispute = Schemas["Dispute"];
/** A payment of this deployment whose order is not there. */
export type Unmatched = Schemas["Unmatched"];
/** What an operator says of such a payment. */
export type UnmatchedWord = Schemas["UnmatchedWord"];
/** An order as operators see it: with its buyer. */
export type FoundOrder = Schemas["FoundOrder"];
/** A step in the history of an order. */
export type Step = Schemas["HistoryEntry"];
/** An operator's refund. */
export type RefundBody = Schemas["OperatorRefundBody"];

/** A command to a waiting room: exactly what each takes, which the API's one body for all of them does not say. */
export type Command =
  | { readonly command: "pause" | "resume" | "close" }
  | { readonly command: "rate"; readonly rate?: number }
  | { readonly command: "notice"; readonly notice?: string }
  | { readonly command: "sold_out"; readonly sold_out: boolean };

/** What is said anew of a sale. */
export type Standing = Schemas["StandingBody"];

/** The document of a room. The client's types of replies know no tuples. */
const roomOf = (room: unknown) => room as Schemas["Document"];
const ofSale = (sale: string) => ({ params: { path: { sale } } });
const ofOrder = (order: string) => ({ params: { path: { order } } });

/** The routes by what they do. Each throws an {@link OnsaleProblem}. */
export const routes = {
  board: async (sale: string): Promise<Board> => {
    const board = await reply(operator.GET("/operator/sales/{sale}/board", ofSale(sale)));
    return { ...board, room: board.room === null ? null : roomOf(board.room) };
  },
  command: async (sale: string, command: Command) =>
    roomOf(await reply(operator.POST("/operator/sales/{sale}/room/commands", { ...ofSale(sale), body: command }))),
  say: async (sale: string, body: Standing) =>
    (await reply(operator.POST("/operator/sales/{sale}/commands", { ...ofSale(sale), body }))) as Schemas["SaleReply"],
  /** The file is sent as it was read: what is published is what was seen. */
  publish: async (sale: string, file: string) =>
    (await reply(operator.PUT("/operator/sales/{sale}", { ...ofSale(sale), body: file as never, bodySerializer: (text: unknown) => text as string }))) as Schemas["SaleReply"],
  keepPicture: (picture: string, data: string) => reply(operator.PUT("/operator/pictures/{picture}", { params: { path: { picture } }, body: { data } })),
  actions: (before: string | null) => reply(operator.GET("/operator/actions", { params: { query: before === null ? {} : { before } } })),
  stuck: () => reply(operator.GET("/operator/stuck")),
  accounts: (sale: string | null) => reply(operator.GET("/operator/accounts", { params: { query: sale === null ? {} : { sale } } })),
  debts: (cursor: string | null) => reply(operator.GET("/operator/accounts", { params: { query: { debts: true, ...(cursor === null ? {} : { cursor }) } } })),
  webhooks: () => reply(operator.GET("/operator/webhooks")),
  disputes: (state: "open" | "over", before: string | null) =>
    reply(operator.GET("/operator/disputes", { params: { query: before === null ? { state } : { state, before } } })),
  unmatched: (before: string | null) => reply(operator.GET("/operator/unmatched", { params: { query: before === null ? {} : { before } } })),
  /** Saying the same again changes nothing. */
  tellUnmatched: (body: Schemas["UnmatchedBody"]) => reply(operator.POST("/operator/unmatched", { body })),
  find: (query: FindQuery) => reply(operator.GET("/operator/orders", { params: { query } })),
  order: async (order: string) => orderFrom(await reply(operator.GET("/operator/orders/{order}", ofOrder(order)))),
  cancel: (order: string) => reply(operator.POST("/operator/orders/{order}/cancel", ofOrder(order))),
  checkIns: (sale: string, after: string | null) =>
    reply(operator.GET("/operator/sales/{sale}/check-ins", { params: { path: { sale }, query: { conflicts: true, ...(after === null ? {} : { after }) } } })),
  /** Not to be repeated by itself: each time raises the issue. */
  reissue: (order: string, tickets: readonly number[]) =>
    reply(operator.POST("/operator/orders/{order}/tickets/reissue", { ...ofOrder(order), body: { tickets: [...tickets] } })),
  refund: (order: string, body: RefundBody) => reply(operator.POST("/operator/orders/{order}/refunds", { ...ofOrder(order), body })),
};

/** A scan of a ticket that had let somebody in before. */
export type DoubleCheckIn = Schemas["DoubleCheckIn"];
/** The check-ins of a sale, counted, and a page of those that were not the first of their ticket. */
export type CheckInBoard = Schemas["CheckInBoard"];

/** What orders are found by. */
export type FindQuery = NonNullable<operations["operatorOrders"]["parameters"]["query"]>;

/** An order with everything that happened to it. */
export interface DeskOrder {
  readonly order: FoundOrder;
  readonly payments: readonly Schemas["PaymentReply"][];
  readonly refunds: readonly Schemas["OrderRefund"][];
  readonly history: readonly Step[];
  /** The number that the next refund has; null if there can be none. */
  readonly next: number | null;
}

/** The most refunds of an order. */
const MOST_REFUNDS = 50;

/** An order from its answer. Refunds are numbered without a gap, so that the next number follows from the last. */
export function orderFrom({ order, buyer, payments, refunds, history }: Schemas["OperatorOrder"]): DeskOrder {
  const last = Math.max(order.refunds?.made ?? 0, ...refunds.map(({ number }) => number));
  return { order: { ...order, buyer }, payments, refunds, history, next: last < MOST_REFUNDS ? last + 1 : null };
}

/** A page of a sale's orders as CSV, and where the next begins. */
async function csvPage(sale: string, cursor: string | null): Promise<{ text: string; next: string | null }> {
  const response = await ask(`/operator/sales/${encodeURIComponent(sale)}/orders.csv${cursor === null ? "" : `?cursor=${encodeURIComponent(cursor)}`}`, { role: "operators", headers: { Accept: "text/csv" } });
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
