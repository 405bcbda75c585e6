/** Exchanging tickets: which ones are given; others are chosen on the page of the seats. */
import { keepExchange } from "../order/exchange.ts";
import { lastChance, leftOf, liveTickets, totalsOf } from "../order/give-back.ts";
import type { Names } from "../order/sale.ts";
import type { Order, OrderRefund } from "../order/words.ts";
import { dateTime, money } from "../shared/format.ts";
import { useNow } from "../shared/hooks.ts";
import { goTo } from "../shared/language.ts";
import { getJson, setJson, tabStore } from "../shared/storage.ts";
import { TicketBoxes, useTicketChoice } from "./ticket-choice.tsx";
import { t, tn } from "./words.ts";

/** Nothing where the terms let nobody exchange, or not any more. */
export function ExchangeForm({ order, refunds, names }: { readonly order: Order; readonly refunds: readonly OrderRefund[]; readonly names: Names }) {
  const now = useNow(10_000);
  const until = lastChance(order, "exchangeable");
  const choice = useTicketChoice(liveTickets(order, now, "exchangeable"));
  if (until === null || choice.possible.length === 0) return null;
  const given = choice.chosen;
  const amount = (minor: number): string => money(minor, order.currency);
  const begin = (): void => {
    if (!choice.isMade()) return;
    keepExchange(order.sale, { order: order.order, tickets: given.map(({ tier, seat }) => ({ tier, seat })), worthMinor: Math.min(totalsOf(given).backMinor, leftOf(order, refunds)) });
    // One for one, for the same people.
    const key = `onsale.choice.${order.sale}`;
    const people = given.map(({ attendee }) => attendee ?? "");
    setJson(tabStore, key, { ...getJson<Record<string, unknown>>(tabStore, key), count: given.length, seats: [], spots: {}, pattern: [], attendees: people });
    goTo(`/s/${encodeURIComponent(order.sale)}/seats`);
  };
  return (
    <>
      <h3>{t("exchange")}</h3>
      <p class="hint">{t("exchange.until", { until: dateTime(until) })}</p>
      <form noValidate onSubmit={(event) => { event.preventDefault(); begin(); }}>
        <TicketBoxes legend={t("exchange.choose")} tickets={choice.possible} choice={choice} names={names}
          about={(ticket) => t("exchange.worth", { worth: amount(totalsOf([ticket]).backMinor) })} />
        <button type="submit">{given.length === 0 ? t("exchange.start-none") : tn("exchange.start", given.length)}</button>
      </form>
    </>
  );
}
