/** When and where it is what an order is for: the event, or the journey of a train. */
import { eventWords, journeyText, shortWhenText, whenText, whereText } from "../shared/event.ts";
import { eventOf, type KnownSale, type Names } from "./sale.ts";

const { t } = eventWords;

/** From where to where, by the ids of the stops. */
export interface Journey {
  readonly from: string;
  readonly to: string;
}

interface Ends {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** The journeys of the lines of an order, each once. */
export function journeysOf(lines: readonly Ends[]): Journey[] {
  const all = lines.flatMap(({ from, to }) => (from === undefined || to === undefined ? [] : [{ from, to }]));
  return all.filter((one, at) => all.findIndex(({ from, to }) => from === one.from && to === one.to) === at);
}

/** A journey in words: each stop with its day and hour. */
export function journeyLine(names: Names, { from, to }: Journey, style: "full" | "short"): string {
  const { departs, arrives } = journeyText(names.timetable ?? {}, from, to, style);
  const stop = (id: string, time: string | null) => (time === null ? names.stop(id) : t("stop", { name: names.stop(id), time }));
  return t("journey", { from: stop(from, departs), to: stop(to, arrives) });
}

/** Day and hour in short, for where a sale is only mentioned; null if nobody has said. */
export function shortWhen(sale: KnownSale, { from, to }: Ends = {}): string | null {
  const stops = sale.file.stops ?? [];
  if (stops.length === 0) {
    const event = eventOf(sale);
    return shortWhenText(event?.starts_at, event?.time_zone);
  }
  return journeyText(sale.file, from ?? stops[0]?.stop ?? "", to ?? stops[stops.length - 1]?.stop ?? "", "short").departs;
}

/** Day, hour and place of an order, or its journeys. */
export function WhenWhere({ names, lines }: { readonly names: Names; readonly lines: readonly Ends[] }) {
  if (names.timetable !== null) {
    const { timetable } = names;
    return (
      <>
        {journeysOf(lines).map(({ from, to }) => {
          const { departs, arrives } = journeyText(timetable, from, to);
          return <p class="when-line" key={`${from} ${to}`}><strong>{names.stop(from)}</strong> {departs}<br />→ <strong>{names.stop(to)}</strong> {arrives}</p>;
        })}
      </>
    );
  }
  const { event } = names;
  const [when, where] = [whenText(event?.starts_at, event?.time_zone), whereText(event?.venue)];
  return (
    <>
      {(when !== null || where !== null) && (
        <p class="when-line">{when !== null && <time dateTime={event?.starts_at ?? ""}>{when}</time>}{when !== null && where !== null && <br />}{where}</p>
      )}
    </>
  );
}
