/** What whoever paid has had the bank take back. */
import { useState } from "preact/hooks";

import { problem, type OnsaleProblem } from "../shared/api.ts";
import { money, shortDateTime } from "../shared/format.ts";
import { useLoaded } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { Loading, Problem } from "../shared/layout.tsx";
import { routes, type Dispute } from "./api.ts";
import { t } from "./words.ts";

/** Milliseconds until they are asked for again: providers tell of a dispute within minutes, banks decide in weeks. */
const POLL_MS = 60_000;

/** The disputes that are open, or those that are over, latest change first. */
export function Disputes() {
  const [state, setState] = useState<"open" | "over">("open");
  return (
    <section aria-labelledby="disputes">
      <h2 id="disputes">{t("disputes")}</h2>
      <div class="field">
        <label>{t("disputes-which")}{" "}
          <select value={state} onChange={({ currentTarget }) => setState(currentTarget.value === "over" ? "over" : "open")}>
            <option value="open">{t("disputes-open")}</option>
            <option value="over">{t("disputes-over")}</option>
          </select>
        </label>
      </div>
      <List key={state} state={state} />
    </section>
  );
}

function List({ state }: { readonly state: "open" | "over" }) {
  const [older, setOlder] = useState<{ disputes: readonly Dispute[]; next: string | null } | null>(null);
  const [failed, setFailed] = useState<OnsaleProblem | null>(null);
  const [isBusy, setBusy] = useState(false);
  // With older ones beside them the newest stay as they were: else one that moves down would be in neither.
  const { data, failure, reload } = useLoaded(() => routes.disputes(state, null), older === null ? POLL_MS : null, [state]);
  if (data === null) {
    return failure === null ? <Loading /> : <Problem problem={failure} retry={() => void reload()} />;
  }
  const next = older === null ? (data.next ?? null) : older.next;
  const more = async () => {
    setBusy(true);
    try {
      const page = await routes.disputes(state, next);
      setOlder({ disputes: [...(older?.disputes ?? []), ...page.disputes], next: page.next ?? null });
      setFailed(null);
    } catch (thrown) {
      setFailed(problem(thrown));
    }
    setBusy(false);
  };
  const disputes = [...data.disputes, ...(older?.disputes ?? [])];
  return (
    <>
      {failure !== null && <Problem problem={failure} />}
      {disputes.length === 0 ? <p class="hint">{t("disputes-none")}</p> : (
        <div class="card">
          <div class="scroll" tabIndex={0} role="group" aria-labelledby="disputes">
            <table class="named whole">
              <thead><tr>
                <th scope="col">{t("dispute-order")}</th><th scope="col" class="number">{t("dispute-amount")}</th>
                <th scope="col">{t("dispute-state")}</th><th scope="col">{t("dispute-opened")}</th><th scope="col">{t("dispute-changed")}</th>
              </tr></thead>
              <tbody>{disputes.map((row) => (
                <tr key={`${row.provider} ${row.dispute}`}>
                  <th scope="row"><a href={href(`/operator/desk?order=${row.order}`)}>{t("subject.order", { order: row.order })}</a><br /><span class="hint url">{row.provider} {row.dispute}</span></th>
                  <td class="number">{money(row.amount_minor, row.currency)}</td>
                  <td>{stateOf(row.state)}</td><td>{shortDateTime(row.opened_at)}</td><td>{shortDateTime(row.changed_at)}</td>
                </tr>
              ))}</tbody>
            </table>
          </div>
          <p class="hint">{t(state === "open" ? "disputes-hint" : "disputes-over-hint")}</p>
        </div>
      )}
      {failed !== null && <Problem problem={failed} />}
      {next !== null && <button type="button" disabled={isBusy} onClick={() => void more()}>{t("disputes-more")}</button>}
    </>
  );
}

function stateOf(state: string): string {
  switch (state) {
    case "open": case "won": case "lost": return t(`dispute.${state}`);
    default: return state;
  }
}
