/** `/`: what is on sale: when, where, and from what price. */
import { useEffect, useState } from "preact/hooks";

import "./index.css";
import { EventPicture } from "../event/picture.tsx";
import { HeldOrders } from "../order/held-orders.tsx";
import { everyone, reply } from "../shared/api.ts";
import { duration, money, shortDateTime } from "../shared/format.ts";
import { useLoaded, useNow } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { CATEGORIES, eventWords, localDay, monthText, shortWhenText, whereText } from "../shared/event.ts";
import { Loading, Page, Problem, start } from "../shared/layout.tsx";
import { announce } from "../shared/live.ts";
import { EVERYTHING, sections, stateOf, type Search, type Summary } from "./listing.ts";
import { t, tn } from "./text.ts";
import { asUtc } from "./timetable.ts";
import { Trains } from "./trains.tsx";

/** Sales of a page of the API, and pages that are loaded by themselves. */
const PAGE_SALES = 200;
const FIRST_PAGES = 5;
const EVERY_MS = 30_000;
/** Before the opening, the time left is said rather than the date. */
const SOON_MS = 24 * 3_600_000;
/** Performers that a card names. */
const MOST_PERFORMERS = 3;

/** The first pages of the list. */
async function loadSales(pages: number): Promise<{ sales: readonly Summary[]; hasMore: boolean }> {
  const sales: Summary[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < pages; page += 1) {
    const query = { limit: PAGE_SALES, ...(cursor === undefined ? {} : { cursor }) };
    const answer = await reply(everyone.GET("/sales", { params: { query } }));
    sales.push(...answer.sales);
    cursor = answer.next;
    if (cursor === undefined) {
      break;
    }
  }
  return { sales, hasMore: cursor !== undefined };
}

function Storefront() {
  const [pages, setPages] = useState(FIRST_PAGES);
  const { data, failure, reload } = useLoaded(() => loadSales(pages), EVERY_MS, [pages]);
  const [search, setSearch] = useState<Search>(EVERYTHING);
  return (
    <Page title={t("title")} banner={<HeldOrders />}>
      <SearchForm search={search} onChange={setSearch} />
      {failure !== null && <Problem problem={failure} retry={() => void reload()} />}
      {data === null ? failure === null && <Loading /> : <Listing sales={data.sales} search={search} />}
      {data?.hasMore === true && <p><button type="button" onClick={() => setPages(pages + FIRST_PAGES)}>{t("more")}</button></p>}
      {(data !== null || failure !== null) && <Trains />}
    </Page>
  );
}

function SearchForm({ search, onChange }: { readonly search: Search; readonly onChange: (search: Search) => void }) {
  return (
    <form role="search" aria-label={t("search")} class="row search" onSubmit={(event) => event.preventDefault()}>
      <div class="field words">
        <label for="title">{t("search.title")}</label>
        <input id="title" type="search" autocomplete="off" value={search.text} onInput={(event) => onChange({ ...search, text: event.currentTarget.value })} />
      </div>
      {(["from", "until"] as const).map((end) => (
        <div class="field" key={end}>
          <label for={end}>{t(`search.${end}`)}</label>
          <input id={end} type="date" value={search[end]} onInput={(event) => onChange({ ...search, [end]: event.currentTarget.value })} />
        </div>
      ))}
      <div class="field">
        <label for="category">{t("search.category")}</label>
        <select id="category" value={search.category} onChange={(event) => onChange({ ...search, category: event.currentTarget.value })}>
          <option value="">{t("search.category.any")}</option>
          {CATEGORIES.map((category) => <option key={category} value={category}>{eventWords.t(`category.${category}`)}</option>)}
        </select>
      </div>
      <div class="field">
        <label for="state">{t("search.state")}</label>
        <select id="state" value={search.all ? "all" : "now"} onChange={(event) => onChange({ ...search, all: event.currentTarget.value === "all" })}>
          <option value="now">{t("search.state.now")}</option>
          <option value="all">{t("search.state.all")}</option>
        </select>
      </div>
    </form>
  );
}

function Listing({ sales, search }: { readonly sales: readonly Summary[]; readonly search: Search }) {
  const now = useNow();
  const { open, upcoming, past } = sections(sales, search, now);
  const count = open.length + upcoming.length + past.length;
  const isSearching = search.text !== "" || search.from !== "" || search.until !== "" || search.category !== "";
  useEffect(() => {
    if (isSearching) {
      announce(count === 0 ? t("none") : tn("found", count));
    }
  }, [count, search]);
  if (count === 0) {
    return <p>{isSearching ? t("none") : t("empty")}</p>;
  }
  return (
    <>
      <Section name="open" sales={open} now={now} />
      <Section name="upcoming" sales={upcoming} now={now} />
      <Section name="past" sales={past} now={now} />
    </>
  );
}

function Section({ name, sales, now }: { readonly name: "open" | "upcoming" | "past"; readonly sales: readonly Summary[]; readonly now: number }) {
  const isPictured = sales.some(({ event }) => event?.picture != null);
  return sales.length === 0 ? null : (
    <section aria-labelledby={`${name}-title`}>
      <h2 id={`${name}-title`}>{t(name)}</h2>
      <ul class="cards">{sales.map((sale) => <Card key={sale.sale} sale={sale} now={now} isPictured={isPictured} />)}</ul>
    </section>
  );
}

/** When it begins: the event, or the train at its first stop, by the clocks there. */
function startOf({ event, route }: Summary): { readonly at: string | null | undefined; readonly zone: string | null | undefined } {
  return event?.starts_at == null ? { at: asUtc(route?.departs_at), zone: "UTC" } : { at: event.starts_at, zone: event.time_zone };
}

/** In place of a picture, beside cards that have one: the day, which stands below too. */
function Blank({ sale }: { readonly sale: Summary }) {
  const { at, zone } = startOf(sale);
  const day = localDay(at, zone);
  return <div class="picture blank" aria-hidden="true">{day !== null && <><strong>{Number(day.slice(8))}</strong>{monthText(at, zone)}</>}</div>;
}

function Card({ sale, now, isPictured }: { readonly sale: Summary; readonly now: number; readonly isPictured: boolean }) {
  const state = stateOf(sale, now);
  const { event, route } = sale;
  const { at, zone } = startOf(sale);
  const [day, place] = [shortWhenText(at, zone), whereText(event?.venue)];
  const performers = event?.performers ?? [];
  return (
    <li class="card sale">
      {event?.picture != null ? <EventPicture picture={event.picture} alt="" /> : isPictured && <Blank sale={sale} />}
      <h3><a href={href(`/s/${sale.sale}`)}>{sale.title}</a></h3>
      {day !== null && <p class="day"><time dateTime={event?.starts_at ?? route?.departs_at ?? ""}>{day}</time></p>}
      {place !== null && <p>{place}</p>}
      {route != null && <p>{t("trains.way", { from: route.from, to: route.to })}</p>}
      {performers.length > 0 && <p class="hint">{performers.slice(0, MOST_PERFORMERS).join(" · ")}{performers.length > MOST_PERFORMERS && " …"}</p>}
      <p class="selling">
        {sale.price_from_minor !== undefined && sale.currency !== undefined && <span class="price">{t("from", { price: money(sale.price_from_minor, sale.currency) })}</span>}
        <span class={`state ${state}`}>{t(`state.${state}`)}</span>
        {(state === "upcoming" || day === null) && <span class="hint">{selling(sale, state, Date.parse(sale.opens_at) - now)}</span>}
      </p>
    </li>
  );
}

function selling(sale: Summary, state: Summary["state"], untilMs: number) {
  if (state !== "upcoming") {
    return <time dateTime={sale.closes_at}>{t("closes", { time: shortDateTime(sale.closes_at) })}</time>;
  }
  const text = untilMs < SOON_MS ? t("opens-in", { time: duration(untilMs) }) : t("opens", { time: shortDateTime(sale.opens_at) });
  return <time dateTime={sale.opens_at}>{text}</time>;
}

void start(<Storefront />);
