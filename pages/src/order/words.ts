/** What orders, payments and refunds are called, on every page that shows them. */
import en from "../i18n/order.en.json";
import zh from "../i18n/order.zh.json";
import type { OnsaleProblem, Schemas } from "../shared/api.ts";
import { problemText } from "../shared/layout.tsx";
import { texts } from "../shared/text.ts";

/** The texts of orders. */
export const words = texts(en, zh);
const { t } = words;

/** An order, as the API shows it. */
export type Order = Schemas["OrderReply"];
/** A refund of an order. */
export type OrderRefund = Schemas["OrderRefund"];

/** The state of an order in words; by the server's clock a pending one may be one whose time to pay is over. */
export function stateWord(order: Pick<Order, "state" | "pay_by">, nowMs: number): string {
  return order.state === "pending" && Date.parse(order.pay_by) <= nowMs ? t("state.over") : t(`state.${order.state}`);
}

const LOOKS: Readonly<Record<Order["state"], string>> = {
  pending: "paused", paid: "open", cancelled: "", expired: "", refund_due: "paused", refunded: "",
};
/** The class that a state looks like. */
export const stateLook = (state: Order["state"]): string => `state ${LOOKS[state] ?? ""}`.trim();

/** The name of a payment provider; an unknown one is shown as it is called. */
export function providerName(provider: string): string {
  switch (provider) {
    case "stripe": case "alipay": case "wechat": case "wallet": return t(`provider.${provider}`);
    default: return provider;
  }
}

/** The words of a refusal that is about an order; others have those of every page. */
export function refusalText(problem: OnsaleProblem): string {
  switch (problem.slug) {
    case "order-resolved": case "order-not-paid": case "refund-not-allowed": case "ticket-refunded": case "other-refund-number":
    case "unknown-ticket": case "nothing-to-refund": case "too-many-refunds": case "payment-too-old": case "payment-disputed": case "more-than-left": case "wallet-short":
    case "other-currency": case "ticket-checked-in":
      return t(`refused.${problem.slug}`);
    case "no-answer": case "outcome-unknown": return t("refused.unknown");
    default: return problemText(problem);
  }
}

/** True if nobody knows whether the request was carried out, or it was not and may be now: repeating it is safe. */
export const mayBeRepeated = (problem: OnsaleProblem): boolean =>
  problem.status === 0 || problem.status === 429 || problem.status >= 500;
