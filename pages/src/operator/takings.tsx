/** What a sale sold and took, minute by minute. */
import "./figures.css";
import { useState } from "preact/hooks";

import { operator, reply, type Schemas } from "../shared/api.ts";
import { duration, money, number } from "../shared/format.ts";
import { useLoaded } from "../shared/hooks.ts";
import { Loading, Problem } from "../shared/layout.tsx";
import { Bars } from "./bars.tsx";
import { t } from "./figures-words.ts";
import { isAmount, POLL_MS, rowsOf, sumOf } from "./takings.ts";

/** How many minutes can be shown. */
const MINUTES = [15, 60] as const;

/** The takings of the last minutes of a sale. */
export function TakingsOf({ sale }: { readonly sale: string }) {
  const [minutes, setMinutes] = useState(15);
  const { data: takings, failure, reload } = useLoaded(
    () => reply(operator.GET("/operator/sales/{sale}/takings", { params: { path: { sale }, query: { minutes } } })),
    POLL_MS, [sale, minutes],
  );
  return (
    <section class="lately" aria-labelledby="takings">
      <div class="row bar">
        <h2 id="takings">{t("takings")}</h2>
        <button type="button" onClick={() => void reload()}>{t("takings-again")}</button>
        <label>
          {t("takings-minutes")}{" "}
          <select value={minutes} onChange={(event) => setMinutes(Number(event.currentTarget.value))}>
            {MINUTES.map((of) => <option key={of} value={of}>{duration(of * 60_000)}</option>)}
          </select>
        </label>
      </div>
      {takings === null && failure === null && <Loading />}
      {failure !== null && <Problem problem={failure} retry={() => void reload()} />}
      {takings !== null && <TakingsView takings={takings} />}
    </section>
  );
}

function TakingsView({ takings: { points, currency } }: { readonly takings: Schemas["Takings"] }) {
  const write = (row: keyof typeof names, value: number) => (isAmount(row) ? money(value, currency) : number(value));
  return (
    <>
      <p class="hint">{t("takings-hint")}</p>
      <div class="card">
        <div class="scroll" tabIndex={0} role="group" aria-labelledby="takings">
          <table class="rates takings">
            <thead><tr>
              <th scope="col">{t("taking")}</th><th scope="col" class="bars">{t("rate-each")}</th>
              <th scope="col" class="number">{t("rate-total")}</th>
            </tr></thead>
            <tbody>
              {rowsOf(points).map((row) => (
                <tr key={row} class={row}>
                  <th scope="row">{t(names[row])}</th>
                  <td class="bars"><Bars minutes={points.map((point) => point[row])} /></td>
                  <td class="number">{write(row, sumOf(points, row))}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </div>
    </>
  );
}

/** What the rows are called. */
const names = {
  orders: "taking.orders", tickets: "taking.tickets", returned: "taking.returned", taken_minor: "taking.taken",
  commission_minor: "taking.commission", given_back_minor: "taking.given-back", unowned_minor: "taking.unowned",
} as const;
