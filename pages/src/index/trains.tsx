/** Trains by day, from and to, with what is left. */
import { useState } from "preact/hooks";

import { everyone, problem, reply, type OnsaleProblem } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { money } from "../shared/format.ts";
import { href, locale } from "../shared/language.ts";
import { Loading, Problem } from "../shared/layout.tsx";
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
  const field = (name: keyof Journey, type: string) => (
    <div class="field">
      <label for={`train-${name}`}>{t(`trains.${name}`)}</label>
      <input id={`train-${name}`} type={type} required value={journey[name]} onInput={(event) => setJourney({ ...journey, [name]: event.currentTarget.value })} />
    </div>
  );
  return (
    <section aria-labelledby="trains">
      <h2 id="trains">{t("trains")}</h2>
      <form class="row" onSubmit={(event) => void find(event)}>
        {field("date", "date")}
        {field("from", "text")}
        {field("to", "text")}
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
