/** An operator's refund: what is typed, checked as the API checks it, and what it comes to. */
import { exponentOf } from "onsale-client";

import type { LiveTicket } from "../order/give-back.ts";
import type { RefundBody } from "../operator/api.ts";
import { reasonOf } from "../operator/reason.ts";

/** Minor units of an amount as people type it, such as 12.5 or 12,50; null if it is none. No float comes near it. */
export function minorOf(text: string, currency: string): number | null {
  const digits = exponentOf(currency);
  const match = /^(\d{1,12})(?:[.,](\d+))?$/.exec(text.trim());
  const fraction = match?.[2] ?? "";
  if (match === null || fraction.length > digits) {
    return null;
  }
  return Number((match[1] ?? "0") + fraction.padEnd(digits, "0"));
}

/** An amount as it may be typed. */
export function typedOf(minor: number, currency: string): string {
  const digits = exponentOf(currency);
  const text = String(minor).padStart(digits + 1, "0");
  return digits === 0 ? text : `${text.slice(0, -digits)}.${text.slice(-digits)}`;
}

/** What is filled in. */
export interface Draft {
  readonly what: "tickets" | "all" | "amount";
  readonly tickets: readonly LiveTicket[];
  /** The amount as it is typed; null if the price of the tickets goes back. */
  readonly amount: string | null;
  readonly reason: string;
}

/** A refund that may be sent, with what it comes to. */
export interface Ready {
  readonly body: RefundBody;
  readonly amountMinor: number;
}

/** Why a draft cannot be sent. */
export type DraftDefect = "refund-no-ticket" | "refund-no-amount" | "refund-too-much" | "refund-long-reason";

/** Checks a draft: what is to be sent, or what is wrong with it. */
export function checked(draft: Draft, number: number, currency: string, leftMinor: number): Ready | DraftDefect {
  const reason = reasonOf(draft.reason);
  if (reason === null) {
    return "refund-long-reason";
  }
  if (draft.what === "tickets" && draft.tickets.length === 0) {
    return "refund-no-ticket";
  }
  const amountMinor = amountOf(draft, currency, leftMinor);
  if (amountMinor === null || (draft.what === "amount" && amountMinor === 0)) {
    return "refund-no-amount";
  }
  if (amountMinor > leftMinor) {
    return "refund-too-much";
  }
  const tickets = draft.what === "all" ? "all" as const : draft.what === "amount" ? [] : draft.tickets.map(({ tier, seat }) => ({ tier, seat }));
  const isTyped = draft.what === "amount" || (draft.what === "tickets" && draft.amount !== null);
  const body: RefundBody = { number, tickets, ...(isTyped ? { amount_minor: amountMinor, currency } : {}), ...(reason === "" ? {} : { reason }) };
  return { body, amountMinor };
}

function amountOf(draft: Draft, currency: string, leftMinor: number): number | null {
  switch (draft.what) {
    case "all": return leftMinor;
    case "amount": return minorOf(draft.amount ?? "", currency);
    case "tickets": return draft.amount === null ? draft.tickets.reduce((sum, { priceMinor }) => sum + priceMinor, 0) : minorOf(draft.amount, currency);
  }
}
