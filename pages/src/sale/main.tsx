/** `/s/{sale}`: a sale. One button always says what happens next: sign in, join, wait, choose seats. */
import { useEffect, useState } from "preact/hooks";

import "./sale.css";
import { aboutOf, useAbout } from "../event/about.ts";
import { AboutEvent, FirstPicture, loadMarkdown, WhenAndWhere } from "../event/invitation.tsx";
import { HeldOrders } from "../order/held-orders.tsx";
import { beforeLong } from "../order/sale.ts";
import { everyone, reply, type Schemas } from "../shared/api.ts";
import { countdown, dateTime, duration, money, number } from "../shared/format.ts";
import { useLoaded, useNow, useSession } from "../shared/hooks.ts";
import { href, locale } from "../shared/language.ts";
import { Loading, Page, Problem, SignInButton, start } from "../shared/layout.tsx";
import { announce } from "../shared/live.ts";
import { isAnothers, keepPlace, keptPlace, type KeptPlace } from "../shared/place.ts";
import { parameter } from "../shared/route.ts";
import { SaleNotice } from "../shared/sale-notice.tsx";
import { subjectOf } from "../shared/session.ts";
import { WheelchairSign } from "../shared/wheelchair-sign.tsx";
import { placeIn } from "../room/proof.ts";
import type { RoomDocument } from "../room/standing.ts";
import { JoinForm } from "./join-form.tsx";
import { nextStep, phaseOf, type Next, type Sale } from "./next-step.ts";
import { refundTerms, type Terms } from "./terms.ts";
import { t } from "./text.ts";

const id = parameter("/s/{sale}", "sale");
const isAgain = new URLSearchParams(location.search).has("again");
/** Milliseconds between two looks at what may change. */
const SALE_EVERY_MS = 60_000;
const ROOM_EVERY_MS = 15_000;

/** Where seats are chosen; the journey of the search for trains goes with it. */
function seatsPath(): string {
  const asked = new URLSearchParams(location.search);
  const journey = new URLSearchParams();
  for (const name of ["from", "to"]) {
    const stop = asked.get(name);
    if (stop !== null) {
      journey.set(name, stop);
    }
  }
  return href(`/s/${id}/seats?${journey}`);
}

const path = { params: { path: { sale: id } } };

/** Milliseconds that the page waits for what it says of the event: whoever comes to buy need not read it. */
const ABOUT_MS = 1_500;

async function loadSale(): Promise<Sale> {
  const sale = (await reply(everyone.GET("/sales/{sale}", path))) as Sale;
  const about = aboutOf(sale.event).then((known) => (known?.description == null ? null : loadMarkdown()));
  await beforeLong(about.catch(() => null), ABOUT_MS);
  return sale;
}

function SalePage() {
  const { data: sale, failure, reload } = useLoaded(loadSale, SALE_EVERY_MS, []);
  if (sale !== null) {
    return <Shown sale={sale} />;
  }
  if (failure?.slug === "not-found") {
    return <Page title={t("missing")}><p>{t("missing.text")}</p><p><a class="button primary" href={href("/")}>{t("all")}</a></p></Page>;
  }
  return <Page title={t("title")}>{failure === null ? <Loading /> : <Problem problem={failure} retry={() => void reload()} />}</Page>;
}

function Shown({ sale }: { readonly sale: Sale }) {
  const about = useAbout(sale.event);
  const asked = new URLSearchParams(location.search);
  const hasRoom = sale.file.room != null;
  const isTrain = (sale.file.stops?.length ?? 0) > 0;
  const isOver = sale.state === "closed" || sale.state === "cancelled" || sale.state === "archived";
  // The client's types of replies know no tuples.
  const showRoom = async () => (await reply(everyone.GET("/sales/{sale}/room", path))) as RoomDocument;
  const { data: room } = useLoaded(
    async () => (hasRoom && !isOver ? showRoom() : null), hasRoom ? ROOM_EVERY_MS : null, [hasRoom, isOver]);
  const { data: availability } = useLoaded(
    async () => (!hasRoom && !isTrain && !isOver ? reply(everyone.GET("/sales/{sale}/availability", path)) : null),
    hasRoom || isTrain ? null : ROOM_EVERY_MS, [hasRoom, isTrain, isOver]);
  const left = room?.tiers ?? (availability === null ? null : sale.file.tiers.map(({ tier }) => availability?.tiers.find((one) => one.tier === tier)?.available ?? 0));
  return (
    <Page title={sale.title} banner={<HeldOrders />} ownHeading>
      <FirstPicture event={sale.event} about={about} />
      <div class="invitation">
        <header>
          <h1>{sale.title}</h1>
          <WhenAndWhere sale={sale} from={asked.get("from")} to={asked.get("to")} />
        </header>
        <Now sale={sale} room={room ?? null} left={left ?? null} />
      </div>
      <AboutEvent event={sale.event} about={about} />
      <Tickets sale={sale} left={left ?? null} />
      <Facts sale={sale} />
    </Page>
  );
}

interface NowProps {
  readonly sale: Sale;
  readonly room: RoomDocument | null;
  /** Seats that are left by tier, if known. */
  readonly left: readonly number[] | null;
}

function Now({ sale, room, left }: NowProps) {
  const now = useNow();
  const session = useSession("buyers");
  const kept = usePlace(room, session === null ? null : subjectOf(session.token));
  const total = left === null ? null : left.reduce((sum, one) => sum + one, 0);
  const next = nextStep({ sale, room, kept, isSignedIn: session !== null, again: isAgain, nowMs: now, left: total });
  const phase = phaseOf(sale, now);
  const shown = next.saying === "sold_out" ? "sold_out" : phase;
  useEffect(() => announce(sentence(sale, next)), [next.saying]);
  return (
    <section class="now card" aria-labelledby="next">
      <p><span class={`state ${shown}`}>{t(`state.${shown}`)}</span></p>
      <h2 id="next" class="unseen">{t("next")}</h2>
      <SaleNotice notice={sale.file.notice} />
      <SaleNotice notice={room?.notice} />
      {next.until !== null && (
        <div role="timer">
          <p class="count">{countdown(next.until.atMs - now)}</p>
          <p class="hint">{t(`until.${next.until.what}`)}</p>
        </div>
      )}
      <p>{sentence(sale, next)}</p>
      <StepButton sale={sale} next={next} />
    </section>
  );
}

function sentence(sale: Sale, { saying }: Next): string {
  return t(`say.${saying}`, { time: dateTime(sale.file.room?.joins_open_at ?? sale.opens_at) });
}

/** The place that is kept here, if it is of whoever is signed in; with its place as soon as that can be computed. */
function usePlace(room: RoomDocument | null, buyer: string | null): KeptPlace | null {
  const [kept, setKept] = useState(() => keptPlace(id));
  useEffect(() => {
    const look = () => setKept(keptPlace(id));
    addEventListener("storage", look);
    addEventListener("pageshow", look);
    return () => {
      removeEventListener("storage", look);
      removeEventListener("pageshow", look);
    };
  }, []);
  const group = room?.groups.find((one) => one.group === kept?.group);
  useEffect(() => {
    if (kept !== null && kept.place === null && group?.seed !== undefined && group.count !== undefined && kept.index < group.count) {
      void placeIn({ first: 0, end: group.count, seed: group.seed, record: 0 }, kept.index).then((place) => {
        const drawn = { ...kept, place };
        keepPlace(drawn);
        setKept(drawn);
      });
    }
  }, [kept?.token, group?.seed]);
  return kept !== null && isAnothers(kept, buyer) ? null : kept;
}

function StepButton({ sale, next: { step } }: { readonly sale: Sale; readonly next: Next }) {
  switch (step) {
    case null: return null;
    case "sign-in": case "sign-in-wait": return <SignInButton role="buyers" label={t(`step.${step}`)} />;
    case "sign-in-choose": return <SignInButton role="buyers" label={t("step.sign-in-choose")} returnTo={seatsPath()} />;
    case "join": case "join-again": return <JoinForm sale={sale} label={t(`step.${step}`)} />;
    case "room": return <a class="button primary" href={href(`/s/${sale.sale}/room`)}>{t("step.room")}</a>;
    case "choose": return <a class="button primary" href={seatsPath()}>{t("step.choose")}</a>;
    case "wait": case "wait-join": return <button type="button" class="primary" disabled>{t(`step.${step}`)}</button>;
  }
}

function Facts({ sale }: { readonly sale: Sale }) {
  const { file } = sale;
  return (
    <section aria-labelledby="terms">
      <h2 id="terms">{t("terms")}</h2>
      <dl class="facts">
        <dt>{t("opens")}</dt><dd><time dateTime={sale.opens_at}>{dateTime(sale.opens_at)}</time></dd>
        <dt>{t("closes")}</dt><dd><time dateTime={sale.closes_at}>{dateTime(sale.closes_at)}</time></dd>
        <dt>{t("limit")}</dt><dd>{t("limit.value", { count: file.limit_per_buyer })}</dd>
        <dt>{t("pay")}</dt><dd>{duration(file.pay_window_seconds * 1_000)}</dd>
        <dt>{t("refunds")}</dt><dd>{refundTerms(file).map(({ tiers, terms }, _, all) => <p key={tiers[0]}>{all.length > 1 && `${tiers.join(", ")}: `}{termsText(terms, file.currency)}</p>)}</dd>
        {file.attendees === "required" && <><dt>{t("names")}</dt><dd>{t("names.required")}</dd></>}
      </dl>
    </section>
  );
}

/** Terms in words, with their fee. */
function termsText(terms: Terms | null, currency: string): string {
  if (terms === null) return t("refunds.none");
  const time = dateTime(terms.until);
  const [hasPercent, hasAmount] = [(terms.fee_percent ?? 0) > 0, (terms.fee_minor ?? 0) > 0];
  if (!hasPercent && !hasAmount) return t("refunds.until-free", { time });
  const percent = new Intl.NumberFormat(locale, { style: "percent" }).format((terms.fee_percent ?? 0) / 100);
  const fee = t(`refunds.fee.${hasPercent && hasAmount ? "both" : hasPercent ? "percent" : "amount"}`, { percent, amount: money(terms.fee_minor ?? 0, currency) });
  return t("refunds.until", { time, fee });
}

/** The price of a tier, or the least of its fares. */
export function priceText(tier: Schemas["TierFile"], currency: string): string {
  const fares = (tier.fares ?? []).map(({ price_minor }) => price_minor);
  if (tier.price_minor != null) {
    return money(tier.price_minor, currency);
  }
  return fares.length === 0 ? t("left.unknown") : t("price.from", { price: money(Math.min(...fares), currency) });
}

function Tickets({ sale, left }: { readonly sale: Sale; readonly left: readonly number[] | null }) {
  const isTrain = (sale.file.stops?.length ?? 0) > 0;
  const leftText = (at: number) => {
    const count = left?.[at];
    return count === undefined ? t("left.unknown") : count === 0 ? t("left.gone") : isTrain ? t("left.some") : number(count);
  };
  return (
    <section>
      <h2 id="tickets">{t("tickets")}</h2>
      <div class="scroll" role="region" aria-labelledby="tickets" tabIndex={0}>
        <table>
          <thead><tr><th scope="col">{t("tier")}</th><th scope="col" class="number">{t("price")}</th><th scope="col" class="number">{t("left")}</th></tr></thead>
          <tbody>
            {sale.file.tiers.map((tier, at) => (
              <tr key={tier.tier}>
                <th scope="row"><WheelchairSign of={tier.name} />{tier.name}</th>
                <td class="number">{priceText(tier, sale.file.currency)}</td>
                <td class="number">{leftText(at)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

void start(<SalePage />);
