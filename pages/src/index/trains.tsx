/** Trains by day, from and to. Hidden where the API has no such search. */
import { useEffect, useState } from "preact/hooks";

import { ask, problem, type OnsaleProblem } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { money, shortDateTime } from "../shared/format.ts";
import { href } from "../shared/language.ts";
import { Loading, Problem } from "../shared/layout.tsx";
import { t } from "./text.ts";

/** A train that sells the journey. */
interface Train {
  readonly sale: string;
  readonly title: string;
  readonly departs_at?: string;
  readonly currency?: string;
  readonly tiers?: readonly { readonly tier: string; readonly name?: string; readonly price_minor?: number; readonly available?: number }[];
}

interface Journey {
  readonly date: string;
  readonly from: string;
  readonly to: string;
}

const query = (journey: Journey) => new URLSearchParams({ ...journey }).toString();

/** True once it is known that the API has the search: an address that it does not have is not found. */
function useIsThere(): boolean {
  const [isThere, setIsThere] = useState(false);
  useEffect(() => {
    ask("/trains").then(() => setIsThere(true), (thrown: unknown) => {
      const { slug } = problem(thrown);
      setIsThere(slug === "invalid" || slug === "malformed");
    });
  }, []);
  return isThere;
}

type Found = { readonly trains: readonly Train[]; readonly journey: Journey } | OnsaleProblem | "asking" | null;

/** The section of the storefront. */
export function Trains() {
  const isThere = useIsThere();
  const [journey, setJourney] = useState<Journey>({ date: new Date(clock.nowMs()).toISOString().slice(0, 10), from: "", to: "" });
  const [found, setFound] = useState<Found>(null);
  if (!isThere) {
    return null;
  }
  const find = async (event: Event) => {
    event.preventDefault();
    setFound("asking");
    try {
      const { trains } = (await (await ask(`/trains?${query(journey)}`)).json()) as { trains: Train[] };
      setFound({ trains, journey });
    } catch (thrown) {
      setFound(problem(thrown));
    }
  };
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
      <div aria-live="polite"><Results found={found} /></div>
    </section>
  );
}

function Results({ found }: { readonly found: Found }) {
  if (found === null) {
    return null;
  }
  if (found === "asking") {
    return <Loading />;
  }
  if (found instanceof Error) {
    return <Problem problem={found} />;
  }
  const { trains, journey } = found;
  const seats = (sale: string) => href(`/s/${encodeURIComponent(sale)}?${new URLSearchParams({ from: journey.from, to: journey.to })}`);
  return trains.length === 0 ? <p>{t("trains.none")}</p> : (
    <ul class="cards">
      {trains.map(({ sale, title, departs_at: departsAt, currency, tiers = [] }) => (
        <li class="card" key={sale}>
          <h3><a href={seats(sale)}>{title}</a></h3>
          {departsAt !== undefined && <p>{shortDateTime(departsAt)}</p>}
          <ul>
            {tiers.map(({ tier, name = tier, price_minor: price, available = 0 }) => (
              <li key={tier}>{name} {price !== undefined && currency !== undefined && money(price, currency)}: {available > 0 ? t("trains.left", { count: available }) : t("trains.gone")}</li>
            ))}
          </ul>
        </li>
      ))}
    </ul>
  );
}
