/** The question before an exchange: what goes, what comes, and what becomes of the money. */
import { Confirm } from "../order/confirm.tsx";
import type { Exchange } from "../order/exchange.ts";
import { ExchangeSum } from "../order/exchange-sum.tsx";
import type { LiveTicket } from "../order/give-back.ts";
import { type Names, namesOf } from "../order/sale.ts";
import { buyer, everyone, reply } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { money } from "../shared/format.ts";
import { useLoaded } from "../shared/hooks.ts";
import { Loading, Problem } from "../shared/layout.tsx";
import type { Choice } from "./choice.ts";
import { type Coming, type Known, type Review, reviewOf } from "./exchange.ts";
import { type Sale, priceText } from "./labels.ts";
import { words } from "./words.ts";

const { t, tn } = words;

interface ExchangeDialogProps {
  readonly sale: string;
  readonly choice: Choice;
  readonly exchange: Exchange;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

/** Asked anew each time: prices and the old order may have changed since the page was loaded. */
async function known(sale: string, order: string): Promise<Known> {
  const path = { params: { path: { order } } };
  const [whole, { refunds }, now] = await Promise.all([
    reply(buyer.GET("/orders/{order}", path)), reply(buyer.GET("/orders/{order}/refunds", path)),
    reply(everyone.GET("/sales/{sale}", { params: { path: { sale } } })) as Promise<Sale>,
  ]);
  return { order: whole, refunds, sale: now };
}

/** The dialog. Nothing is sent before it is confirmed, nor while its sums are not known. */
export function ExchangeDialog({ sale, choice, exchange, onConfirm, onClose }: ExchangeDialogProps) {
  const { data, failure, reload } = useLoaded(() => known(sale, exchange.order), null, []);
  const review = data === null ? null : reviewOf(data, choice, exchange, clock.nowMs());
  const isWhole = review?.kind === "known" && !review.sums.pays;
  const count = exchange.tickets.length;
  return (
    <Confirm
      title={tn("review.title", count)} action={isWhole ? t("hold") : tn("review.yes", count)} keep={t("review.no")} look={isWhole ? "primary" : "danger"}
      isSending={false} isReady={review?.kind === "known"} onConfirm={onConfirm} onClose={onClose}
    >
      <div class="review" aria-live="polite">
        {data !== null && review !== null ? <Reviewed known={data} review={review} journey={choice.journey} />
          : failure === null ? <Loading />
            : <Problem problem={failure} text={failure.slug === "not-found" ? t("refused.exchange-gone") : undefined} retry={() => void reload()} />}
      </div>
    </Confirm>
  );
}

function Reviewed({ known: { order, sale }, review, journey }: { readonly known: Known; readonly review: Review; readonly journey: Choice["journey"] }) {
  switch (review.kind) {
    case "gone": return <p class="problem">{t("refused.exchange-gone")}</p>;
    case "over": return <p class="problem">{t("refused.exchange-not-allowed")}</p>;
    case "unsold": return <p class="problem">{t("journey-none")}</p>;
    case "known": break;
  }
  const { given, coming, sums, provider } = review;
  const names = namesOf(sale.sale, sale);
  const hasBlind = coming.some(({ kind }) => kind !== "seat" && kind !== "standing");
  return (
    <>
      <p>{sale.title}{journey !== null && <>, {names.stop(journey.from)} – {names.stop(journey.to)}</>}</p>
      <h3>{t("review.goes")}</h3>
      <ul>{given.map((ticket) => <Given key={`${ticket.tier} ${ticket.seat}`} ticket={ticket} names={names} currency={order.currency} />)}</ul>
      <h3>{t("review.comes")}</h3>
      <ul>{coming.map((one) => <Comes key={`${one.tier} ${one.label}`} coming={one} currency={order.currency} />)}</ul>
      {hasBlind && <p class="hint">{t("review.blind")}</p>}
      <ExchangeSum sums={sums} currency={order.currency} provider={provider}><p>{t(sums.pays ? "review.pays" : "review.whole")}</p></ExchangeSum>
      <p>{t(sums.pays ? "review.sure" : "review.until-paid")}</p>
    </>
  );
}

function Given({ ticket: { tier, seat, attendee, priceMinor }, names, currency }: { readonly ticket: LiveTicket; readonly names: Names; readonly currency: string }) {
  return <li><span><strong>{names.seat(seat)}</strong> {names.tier(tier)}{attendee !== null && <>, {attendee}</>}</span> <span>{money(priceMinor, currency)}</span></li>;
}

function Comes({ coming: { kind, tier, count, label, priceMinor }, currency }: { readonly coming: Coming; readonly currency: string }) {
  const what = kind === "seat" ? "" : kind === "standing" ? t("standing") : kind === "pattern" ? t("review.pattern", { letters: label }) : t(`review.${kind}`);
  const price = priceMinor === null ? "–" : priceText(priceMinor, currency);
  return (
    <li>
      <span>{kind === "seat" ? <strong>{label}</strong> : <strong>{tn("tickets", count)}</strong>} {tier}{what !== "" && <span class="hint"> · {what}</span>}</span>
      <span>{count === 1 ? price : t("each", { price })}</span>
    </li>
  );
}
