/** Parts of an order on the page: its tickets, payments and refunds. */
import "./order.css";
import type { Schemas } from "../shared/api.ts";
import { maskedName } from "../shared/event.ts";
import { money, shortDateTime } from "../shared/format.ts";
import { useNow } from "../shared/hooks.ts";
import { movedFrom } from "./exchange.ts";
import { WheelchairSign } from "../shared/wheelchair-sign.tsx";
import type { Names } from "./sale.ts";
import { providerName, stateLook, stateWord, words, type Order, type OrderRefund } from "./words.ts";

const { t } = words;

/** The state of an order. */
export function State({ order }: { readonly order: Pick<Order, "state" | "pay_by"> }) {
  const now = useNow(5_000);
  return <span class={stateLook(order.state)}>{stateWord(order, now)}</span>;
}

/** The tickets of an order, by line; with the names by which the engine knows the seats and whole numbers of documents, for those who look for them. */
export function Lines({ order, names, withIds = false }: { readonly order: Order; readonly names: Names; readonly withIds?: boolean }) {
  return (
    <ul class="lines">
      {order.lines.map(({ tier, from, to, price_minor, tickets }) => (
        <li key={tier}>
          <p>
            <strong><WheelchairSign of={names.tier(tier)} />{names.tier(tier)}</strong>
            {from !== undefined && to !== undefined && <>, {t("journey", { from: names.stop(from), to: names.stop(to) })}</>}
            <span class="hint"> · {t("each", { price: money(price_minor, order.currency) })}</span>
          </p>
          <ul class="seats">
            {tickets.map(({ seat, attendee, refund }) => (
              <li key={seat} class={refund === undefined ? "" : "void"}>
                <span class="seat">{names.seat(seat)}</span>{withIds && names.seat(seat) !== seat && <span class="hint"> ({seat})</span>}{attendee !== undefined && <> {withIds ? attendee : maskedName(attendee)}</>}
                {refund !== undefined && <span class="hint"> ({t("ticket-void", { number: refund })})</span>}
              </li>
            ))}
          </ul>
        </li>
      ))}
    </ul>
  );
}

/** Every payment that came for an order, and what became of it. */
export function Payments({ payments }: { readonly payments: readonly Schemas["PaymentReply"][] }) {
  if (payments.length === 0) {
    return <p class="hint">{t("payments-none")}</p>;
  }
  return (
    <ul class="records">
      {payments.map(({ provider, payment, amount_minor, currency, outcome, decided_at, reason, refund }) => {
        // No provider was paid with money that was moved from an order whose tickets were given.
        const from = movedFrom(payment);
        const values = { amount: money(amount_minor, currency), provider: providerName(provider), order: from ?? "" };
        const kind = outcome === "accepted" ? (provider === "free" ? "free" : from === null ? "accepted" : "moved") : refund?.state === "refunded" ? "back" : "refund";
        return (
          <li key={`${provider}/${payment}`}>
            <p>{t(`payment.${kind}`, values)}</p>
            <p class="hint">
              {shortDateTime(decided_at)}
              {reason !== undefined && <> · {t(`reason.${reason}`)}</>}
              {refund !== undefined && refund.state !== "refunded" && <> {t(`refund.state.${refund.state}`)}</>}
            </p>
          </li>
        );
      })}
    </ul>
  );
}

/** The refunds of an order, by number. */
export function Refunds({ refunds, names }: { readonly refunds: readonly OrderRefund[]; readonly names: Names }) {
  return (
    <ul class="records">
      {refunds.map(({ number, amount_minor, currency, asked_by, made_at, state, tickets, kept_minor, exchanged_for }) => (
        <li key={number}>
          <p>{t("refund", { number, amount: money(amount_minor, currency) })}<span class="hint"> · {t(`refund.by.${asked_by}`)}</span></p>
          <p class="hint">
            {shortDateTime(made_at)} · {tickets.length === 0 ? t("refund.no-tickets") : t("refund.tickets", { tickets: tickets.map(({ seat }) => names.seat(seat)).join("; ") })}
          </p>
          {exchanged_for !== undefined && (kept_minor ?? 0) > 0 && <p class="hint">{t("refund.kept", { amount: money(kept_minor ?? 0, currency), order: exchanged_for })}</p>}
          <p class={state === "failed" || state === "failed_later" ? "warning" : "hint"}>{t(`refund.state.${state}`)}</p>
        </li>
      ))}
    </ul>
  );
}
