/** Trains by day, from and to, with what is left. */
import { useRef, useState } from "preact/hooks";

import { everyone, problem, reply, type OnsaleProblem } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { money } from "../shared/format.ts";
import { href, locale } from "../shared/language.ts";
import { Loading, Problem } from "../shared/layout.tsx";
import { StopField } from "./stop-field.tsx";
import { suggestionsOf, type StopsOfName, type Suggestion } from "./stops.ts";
import { asked, dayOf, journeyQuery, leftOf, railwayTime, type Journey, type Train } from "./timetable.ts";
import { t } from "./text.ts";

/** A page of trains, and where the next one begins. */
interface Shown {
  readonly trains: readonly Train[];
  readonly journey: Journey;
  readonly next?: string | undefined;
}

type Found = Shown | OnsaleProblem | "asking" | null;

const search = async (journey: Journey, cursor?: string): Promise<Shown> => {
  const query = { ...journey, ...(cursor === undefined ? {} : { cursor }) };
  const { trains, next } = await reply(everyone.GET("/trains", { params: { query } }));
  return { trains, journey, next };
};

/** Pages of the stops of a day that are loaded: one has those of a country. */
const STOPS_PAGES = 5;

/** The stops of a day. */
async function loadStops(date: string): Promise<readonly Suggestion[]> {
  const all: StopsOfName[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < STOPS_PAGES; page += 1) {
    const query = { date, ...(cursor === undefined ? {} : { cursor }) };
    const answer = await reply(everyone.GET("/stops", { params: { query } }));
    all.push(...answer.stops);
    cursor = answer.next;
    if (cursor === undefined) {
      break;
    }
  }
  return suggestionsOf(all);
}

/**
 * The stops of a day, none until they are loaded, and what loads them: when a field is used, once for each day. Without a
 * network there are none, and the next use tries again.
 */
function useStops(date: string): readonly [readonly Suggestion[], () => void] {
  const [stops, setStops] = useState<{ readonly date: string; readonly all: readonly Suggestion[] }>({ date: "", all: [] });
  const loading = useRef("");
  const load = () => {
    if (date === "" || date === stops.date || date === loading.current) {
      return;
    }
    loading.current = date;
    const end = () => { loading.current = loading.current === date ? "" : loading.current; };
    void loadStops(date).then((all) => setStops({ date, all }), () => undefined).finally(end);
  };
  return [date === stops.date ? stops.all : [], load];
}

/** The section of the storefront. */
export function Trains() {
  const [journey, setJourney] = useState<Journey>({ date: dayOf(clock.nowMs()), from: "", to: "" });
  const [found, setFound] = useState<Found>(null);
  const show = async (page: () => Promise<Shown>) => {
    try {
      setFound(await page());
    } catch (thrown) {
      setFound(problem(thrown));
    }
  };
  const find = async (event: Event) => {
    event.preventDefault();
    setFound("asking");
    await show(() => search(asked(journey)));
  };
  const more = (before: Shown) => show(async () => {
    const page = await search(before.journey, before.next);
    return { ...page, trains: [...before.trains, ...page.trains] };
  });
  const [stops, loadStops] = useStops(journey.date);
  const set = (name: keyof Journey, value: string) => setJourney((before) => ({ ...before, [name]: value }));
  const stop = (name: "from" | "to") => (
    <StopField id={`train-${name}`} label={t(`trains.${name}`)} value={journey[name]} suggestions={stops} onUse={loadStops} onChange={(value) => set(name, value)} />
  );
  return (
    <section aria-labelledby="trains">
      <h2 id="trains">{t("trains")}</h2>
      <form class="row" onSubmit={(event) => void find(event)}>
        <div class="field">
          <label for="train-date">{t("trains.date")}</label>
          <input id="train-date" type="date" required value={journey.date} onInput={(event) => set("date", event.currentTarget.value)} />
        </div>
        {stop("from")}
        {stop("to")}
        <button type="submit">{t("trains.find")}</button>
      </form>
      <div aria-live="polite"><Results found={found} more={more} /></div>
    </section>
  );
}

function Results({ found, more }: { readonly found: Found; readonly more: (before: Shown) => Promise<void> }) {
  if (found === null) {
    return null;
  }
  if (found === "asking") {
    return <Loading />;
  }
  if (found instanceof Error) {
    return <Problem problem={found} />;
  }
  const hasMore = found.next !== undefined;
  return (
    <>
      {found.trains.length === 0 && !hasMore && <p>{t("trains.none")}</p>}
      <ul class="cards">{found.trains.map((train) => <Card key={`${train.sale} ${train.from.stop}`} train={train} />)}</ul>
      {hasMore && <p><button type="button" onClick={() => void more(found)}>{t("more")}</button></p>}
    </>
  );
}

function Card({ train }: { readonly train: Train }) {
  const { sale, title, state, from, to, departs_at: departs, arrives_at: arrives, currency, tiers } = train;
  const stop = (name: string, time: string | undefined) => time !== undefined ? `${name} ${railwayTime(time, locale)}` : name;
  return (
    <li class="card">
      <h3><a href={href(`/s/${encodeURIComponent(sale)}?${journeyQuery(train)}`)}>{title}</a></h3>
      <p>{t("trains.way", { from: stop(from.name, departs), to: stop(to.name, arrives) })}</p>
      {state !== "open" && <p><span class={`state ${state}`}>{t(`state.${state}`)}</span></p>}
      <ul>
        {tiers.map((tier) => (
          <li key={tier.tier}>{tier.name} {money(tier.price_minor, currency)}{left(tier)}</li>
        ))}
      </ul>
    </li>
  );
}

function left(tier: Train["tiers"][number]): string {
  switch (leftOf(tier)) {
    case "left": return `: ${t("trains.left", { count: tier.available ?? 0 })}`;
    case "gone": return `: ${t("trains.gone")}`;
    case "unknown": return "";
  }
}
