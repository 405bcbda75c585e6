/** Who owes the platform something, by name. */
import { useState } from "preact/hooks";

import { hashOf } from "../desk/find.ts";
import { problem, type OnsaleProblem } from "../shared/api.ts";
import { money } from "../shared/format.ts";
import { useLoaded } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { Loading, Problem } from "../shared/layout.tsx";
import { routes } from "./api.ts";
import { debtorOf, lookForDebts, type Debts as Found } from "./debts.ts";
import { t } from "./words.ts";

/** Pages that are looked through at a press: each has 50 sales. */
const PAGES_AT_A_PRESS = 20;

/** The debts of merchants and wallets: those of the first page, and more at a press. */
export function Debts() {
  return (
    <section aria-labelledby="debts">
      <h2 id="debts">{t("debts")}</h2>
      <List />
    </section>
  );
}

function List() {
  const [more, setMore] = useState<Found | null>(null);
  const [failed, setFailed] = useState<OnsaleProblem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const { data, failure, reload } = useLoaded(() => lookForDebts(null, 1, routes.debts), null, []);
  if (data === null) {
    return failure === null ? <Loading /> : <Problem problem={failure} retry={() => void reload()} />;
  }
  const found = more ?? data;
  const look = async () => {
    setBusy(true);
    try {
      setMore(await lookForDebts(found, PAGES_AT_A_PRESS, routes.debts));
      setFailed(null);
    } catch (thrown) {
      setFailed(problem(thrown));
    }
    setBusy(false);
  };
  return (
    <>
      {found.debts.length === 0 ? <p class="hint" role="status">{t(found.next === null ? "debts-none" : "debts-none-yet")}</p> : <Owing {...found} />}
      {failed !== null && <Problem problem={failed} />}
      {found.next !== null && <button type="button" disabled={isBusy} onClick={() => void look()}>{t("debts-more")}</button>}
    </>
  );
}

function Owing({ debts }: Found) {
  return (
    <div class="card">
      <p class="hint">{t("debts-hint")}</p>
      <ul class="unmatched-list">{debts.map((row) => (
        <li key={`${row.currency} ${row.account}`}><p><strong>{money(-row.balance_minor, row.currency)}</strong> · <Who account={row.account} /></p></li>
      ))}</ul>
    </div>
  );
}

/** Who owes, with the way to what it is about: the sale, or the buyer's orders at the desk. */
function Who({ account }: { readonly account: string }) {
  const debtor = debtorOf(account);
  if (debtor === null) return <>{account}</>;
  if ("buyer" in debtor) {
    return <a href={href("/operator/desk") + hashOf({ way: "buyer", values: { buyer: debtor.buyer } })}>{t("debt-wallet", debtor)}</a>;
  }
  return <a href={href(`/operator?sale=${encodeURIComponent(debtor.sale)}`)}>{t("debt-merchant", debtor)}</a>;
}
