/** From where to where, on a train. */
import { clock } from "../shared/clock.ts";
import { hasLeft, stopOptionText } from "../shared/event.ts";
import type { Journey } from "./choice.ts";
import type { Sale } from "./labels.ts";
import { words } from "./words.ts";

const { t } = words;

/** The stops of a sale; none at a concert. */
export const stopsOf = (sale: Sale): readonly { stop: string; name: string }[] => sale.file.stops ?? [];

/** The journey of an address or of a kept choice, if the train makes it yet; else the whole way that is left. Null at a concert. */
export function journeyOf(sale: Sale, search: string, kept: Journey | null, nowMs: number = clock.nowMs()): Journey | null {
  const stops = stopsOf(sale).map((one) => one.stop);
  const [next, last] = [stops.slice(0, -1).find((stop) => !hasLeft(sale.file, stop, nowMs)), stops[stops.length - 1]];
  const first = next ?? stops[0];
  if (first === undefined || last === undefined) return null;
  const query = new URLSearchParams(search);
  const wanted = [{ from: query.get("from") ?? "", to: query.get("to") ?? "" }, kept ?? { from: "", to: "" }];
  const isOne = ({ from, to }: Journey): boolean => stops.indexOf(from) >= stops.indexOf(first) && stops.indexOf(from) < stops.indexOf(to);
  return wanted.find(isOne) ?? { from: first, to: last };
}

/** Two lists; whoever chooses a start behind the end moves the end. */
export function JourneyForm({ sale, journey, onJourney }: { readonly sale: Sale; readonly journey: Journey; readonly onJourney: (journey: Journey) => void }) {
  const stops = stopsOf(sale);
  const at = (stop: string): number => stops.findIndex((one) => one.stop === stop);
  const from = (stop: string): void => {
    const next = stops[Math.max(at(stop) + 1, at(journey.to))];
    onJourney({ from: stop, to: next?.stop ?? journey.to });
  };
  return (
    <fieldset class="journey">
      <legend>{t("journey")}</legend>
      <div class="row">
        <div class="field">
          <label for="from">{t("from")}</label>
          <select id="from" value={journey.from} onChange={(event) => from(event.currentTarget.value)}>
            {stops.slice(0, -1).filter((one) => one.stop === journey.from || !hasLeft(sale.file, one.stop, clock.nowMs())).map((one) => <option value={one.stop} key={one.stop}>{stopOptionText(sale.file, one, "departs")}</option>)}
          </select>
        </div>
        <div class="field">
          <label for="to">{t("to")}</label>
          <select id="to" value={journey.to} onChange={(event) => onJourney({ ...journey, to: event.currentTarget.value })}>
            {stops.slice(at(journey.from) + 1).map((one) => <option value={one.stop} key={one.stop}>{stopOptionText(sale.file, one, "arrives")}</option>)}
          </select>
        </div>
      </div>
    </fieldset>
  );
}
