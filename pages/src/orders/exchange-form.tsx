/** Exchanging tickets: which ones are given; others are chosen on the page of the seats. */
import { useState } from "preact/hooks";

import { keepExchange } from "../order/exchange.ts";
import { keyOf, lastChance, liveTickets, totalsOf } from "../order/give-back.ts";
import type { Names } from "../order/sale.ts";
import type { Order } from "../order/words.ts";
import { dateTime, money } from "../shared/format.ts";
import { useNow } from "../shared/hooks.ts";
import { goTo } from "../shared/language.ts";
import { getJson, setJson, tabStore } from "../shared/storage.ts";
import { t, tn } from "./words.ts";

/** Nothing where the terms let nobody exchange, or not any more. */
export function ExchangeForm({ order, names }: { readonly order: Order; readonly names: Names }) {
  const now = useNow(10_000);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [isMissing, setMissing] = useState(false);
  const until = lastChance(order, "exchangeable");
  const possible = liveTickets(order, now, "exchangeable").filter(({ feeMinor }) => feeMinor !== null);
  if (until === null || possible.length === 0) return null;
  const given = possible.filter((ticket) => chosen.has(keyOf(ticket)));
  const amount = (minor: number): string => money(minor, order.currency);
  const begin = (): void => {
    if (given.length === 0) {
      setMissing(true);
      return;
    }
    keepExchange(order.sale, { order: order.order, tickets: given.map(({ tier, seat }) => ({ tier, seat })), worthMinor: totalsOf(given).backMinor });
    // One for one, for the same people.
    const key = `onsale.choice.${order.sale}`;
    const people = given.map(({ attendee }) => attendee ?? "");
    setJson(tabStore, key, { ...getJson<Record<string, unknown>>(tabStore, key), count: given.length, seats: [], spots: {}, pattern: [], attendees: people });
    goTo(`/s/${encodeURIComponent(order.sale)}/seats`);
  };
  const toggle = (key: string, isChosen: boolean): void => {
    setMissing(false);
    setChosen((before) => new Set(isChosen ? [...before, key] : [...before].filter((one) => one !== key)));
  };
  return (
    <>
      <h3>{t("exchange")}</h3>
      <p class="hint">{t("exchange.until", { until: dateTime(until) })}</p>
      <form noValidate onSubmit={(event) => { event.preventDefault(); begin(); }}>
        <fieldset>
          <legend>{t("exchange.choose")}</legend>
          {possible.map((ticket) => (
            <label class="choice" key={keyOf(ticket)}>
              <input type="checkbox" checked={chosen.has(keyOf(ticket))} onChange={(event) => toggle(keyOf(ticket), event.currentTarget.checked)} />
              <span><strong>{ticket.seat}</strong> {names.tier(ticket.tier)}{ticket.attendee !== null && <>, {ticket.attendee}</>}
                <span class="hint"> · {t("exchange.worth", { worth: amount(totalsOf([ticket]).backMinor) })}</span></span>
            </label>
          ))}
        </fieldset>
        {isMissing && <p class="problem" role="alert">{t("give-back.none")}</p>}
        <button type="submit">{given.length === 0 ? t("exchange.start-none") : tn("exchange.start", given.length)}</button>
      </form>
    </>
  );
}
