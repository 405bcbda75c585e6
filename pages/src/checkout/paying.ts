/** What a payment is to look like from here: which ways there are, how often to ask, where a provider may lead. */
import type { Schemas } from "../shared/api.ts";
import type { Config } from "../shared/config.ts";

type Order = Pick<Schemas["OrderReply"], "state" | "pay_by" | "payments">;

/** A way to pay that this page knows how to go. */
export interface Way {
  readonly provider: string;
  readonly method: "page" | "code";
}

/** Milliseconds after leaving for a provider, or showing a code, within which the answer is expected. */
const EXPECTED_MS = 180_000;

/** Providers that take one currency only: docs/payments-wechat-alipay.md. Others are asked, and may refuse. */
const ONE_CURRENCY: Readonly<Record<string, string>> = { alipay: "CNY", wechat: "CNY" };

/** The ways of the settings that this page can go and an order of this currency too, the first one first. */
export function waysOf(settings: Pick<Config, "payments">, currency: string): Way[] {
  return settings.payments.flatMap(({ provider, method }) =>
    (method === "page" || method === "code") && (ONE_CURRENCY[provider] ?? currency) === currency ? [{ provider, method }] : []);
}

/** Milliseconds between two requests for an order; null if it cannot change any more. */
export function pollMs(order: Order | null, startedAtMs: number | null, nowMs: number): number | null {
  if (order === null) return 3_000;
  switch (order.state) {
    case "pending": {
      const isExpected = startedAtMs !== null && nowMs - startedAtMs < EXPECTED_MS;
      const isLate = Date.parse(order.pay_by) <= nowMs;
      return isExpected || isLate ? 2_000 : 5_000;
    }
    case "refund_due": return 10_000;
    // Money that comes after the end is still decided upon.
    case "expired": case "cancelled": return 15_000;
    case "paid": case "refunded": return (order.payments ?? []).some(({ refund }) => refund !== undefined && refund.state !== "refunded") ? 15_000 : null;
  }
}

/** The address of a provider's page, if it is one that a browser may go to. */
export function providerAddress(url: unknown): string | null {
  if (typeof url !== "string") return null;
  try {
    const address = new URL(url);
    return address.protocol === "https:" || address.protocol === "http:" ? address.href : null;
  } catch {
    return null;
  }
}

/** What a time that is left is announced at, in milliseconds, the longest first. */
export const ANNOUNCED_AT_MS = [300_000, 60_000] as const;

/** The mark that was passed between two looks at the clock; undefined if none was. */
export function passedMark(beforeMs: number, leftMs: number): number | undefined {
  return ANNOUNCED_AT_MS.find((mark) => beforeMs > mark && leftMs <= mark && leftMs > 0);
}
