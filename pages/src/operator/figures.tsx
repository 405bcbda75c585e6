/** What the metrics say of a sale's last minutes. */
import "./figures.css";
import { useState } from "preact/hooks";

import { clockTime, duration, number } from "../shared/format.ts";
import { useLoaded } from "../shared/hooks.ts";
import { locale } from "../shared/language.ts";
import { Loading, Problem } from "../shared/layout.tsx";
import { operator, reply, type Schemas } from "../shared/api.ts";
import { countsOf, lastMinute, pollMs, share, total, type Figures } from "./figures.ts";
import { Bars } from "./bars.tsx";
import { reasonText, t } from "./figures-words.ts";

/** How many minutes can be shown. */
const MINUTES = [5, 15, 60] as const;

const milliseconds = new Intl.NumberFormat(locale, { style: "unit", unit: "millisecond", maximumSignificantDigits: 3 });

/** The last minutes of a sale. */
export function Lately({ sale }: { readonly sale: string }) {
  const [minutes, setMinutes] = useState(15);
  const [everyMs, setEveryMs] = useState(pollMs(null));
  const { data: figures, failure, reload } = useLoaded(async () => {
    const path = { params: { path: { sale }, query: { minutes } } };
    const next = await reply(operator.GET("/operator/sales/{sale}/figures", path));
    setEveryMs(pollMs(next));
    return next;
  }, everyMs, [sale, minutes, everyMs]);
  return (
    <section class="lately" aria-labelledby="lately">
      <div class="row bar">
        <h2 id="lately">{t("lately")}</h2>
        <label>
          {t("lately-minutes")}{" "}
          <select value={minutes} onChange={(event) => setMinutes(Number(event.currentTarget.value))}>
            {MINUTES.map((of) => <option key={of} value={of}>{duration(of * 60_000)}</option>)}
          </select>
        </label>
      </div>
      {figures === null && failure === null && <Loading />}
      {failure !== null && <Problem problem={failure} retry={() => void reload()} />}
      {figures !== null && <LatelyView figures={figures} />}
    </section>
  );
}

function LatelyView({ figures }: { readonly figures: Figures }) {
  const time = clockTime(figures.as_of);
  const age = duration(figures.delay_seconds * 1_000);
  return (
    <>
      <p class="hint">{figures.delay_seconds > 0 ? t("lately-delayed", { age, time }) : t("lately-live", { time })}</p>
      <Rates figures={figures} />
      <div class="pair">
        <div>
          <h3 id="refused">{t("refused")}</h3>
          <Reasons reasons={figures.refused} labelledBy="refused" none={t("refused-none")} />
          <h3 id="errors">{t("errors")}</h3>
          <Reasons reasons={figures.server_errors} labelledBy="errors" none={t("errors-none")} />
        </div>
        <div>
          <h3 id="latency">{t("latency")}</h3>
          <Latency of={figures.latency} />
        </div>
      </div>
    </>
  );
}

/** The counts of the sale: by the minute as bars, of the last minute, and together. */
function Rates({ figures }: { readonly figures: Figures }) {
  const { points } = figures;
  return (
    <div class="card">
      <div class="scroll" tabIndex={0} role="group" aria-labelledby="lately">
        <table class="rates">
          <thead><tr>
            <th scope="col">{t("rate")}</th><th scope="col" class="bars">{t("rate-each")}</th>
            <th scope="col" class="number">{t("rate-last")}</th><th scope="col" class="number">{t("rate-total")}</th>
          </tr></thead>
          <tbody>
            {countsOf(points).map((count) => {
              const last = lastMinute(figures, count);
              return (
                <tr key={count} class={count}>
                  <th scope="row">{t(`rate.${count}`)}</th>
                  <td class="bars">
                    <Bars minutes={points.map((point) => point[count])} />
                  </td>
                  <td class="number">{last === null ? "–" : number(last)}</td><td class="number">{number(total(points, count))}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </div>
  );
}

interface ReasonsProps {
  readonly reasons: readonly Schemas["FigureReason"][];
  readonly labelledBy: string;
  readonly none: string;
}

/** Types of problems with how often they occurred. */
function Reasons({ reasons, labelledBy, none }: ReasonsProps) {
  if (reasons.length === 0) {
    return <p class="hint">{none}</p>;
  }
  return (
    <ul class="reasons" aria-labelledby={labelledBy}>
      {reasons.map(({ reason, title, count }) => (
        <li key={reason}>
          <span>{reasonText(reason, title)}</span> <span class="number">{number(count)}</span>
          <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect width={share(count, reasons[0]?.count ?? 0)} height="4" /></svg>
        </li>
      ))}
    </ul>
  );
}

/** How long the functions took. */
function Latency({ of }: { readonly of: readonly Schemas["FigureLatency"][] }) {
  if (of.length === 0) {
    return <p class="hint">{t("latency-none")}</p>;
  }
  return (
    <div class="scroll" tabIndex={0} role="group" aria-labelledby="latency">
      <table>
        <thead><tr>
          <th scope="col">{t("function")}</th><th scope="col" class="number">{t("latency-half")}</th>
          <th scope="col" class="number">{t("latency-most")}</th><th scope="col" class="number">{t("latency-count")}</th>
        </tr></thead>
        <tbody>
          {of.map((row) => (
            <tr key={row.function}>
              <th scope="row">{row.function}</th>
              <td class="number">{milliseconds.format(row.p50_ms)}</td><td class="number">{milliseconds.format(row.p99_ms)}</td>
              <td class="number">{number(row.count)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
