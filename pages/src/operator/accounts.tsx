/** What accounts of the ledger have: the deployment's, or that of a sale's merchant. */
import { money } from "../shared/format.ts";
import { useLoaded } from "../shared/hooks.ts";
import { Loading, Problem } from "../shared/layout.tsx";
import { routes } from "./api.ts";
import { t } from "./words.ts";

/** Milliseconds until they are read again: facts are settled within seconds, settlements come by the day. */
const POLL_MS = 60_000;

/** The accounts; of a sale, what is left of the merchant's is what the merchant is owed. */
export function Accounts({ sale }: { readonly sale: string | null }) {
  const { data, failure, reload } = useLoaded(() => routes.accounts(sale), POLL_MS, [sale]);
  return (
    <section aria-labelledby="accounts">
      <h2 id="accounts">{t(sale === null ? "accounts" : "settlement")}</h2>
      {data === null && failure === null && <Loading />}
      {failure !== null && <Problem problem={failure} retry={() => void reload()} />}
      {data !== null && (data.accounts.length === 0 ? <p class="hint">{t("accounts-none")}</p> : (
        <div class="card">
          <div class="scroll" tabIndex={0} role="group" aria-labelledby="accounts">
            <table class="named">
              <thead><tr>
                <th scope="col">{t("account")}</th><th scope="col" class="number">{t(sale === null ? "account-left" : "account-owed")}</th>
                <th scope="col" class="number">{t("account-in")}</th><th scope="col" class="number">{t("account-out")}</th>
                <th scope="col" class="number">{t("account-posted")}</th>
              </tr></thead>
              <tbody>{data.accounts.map((row) => (
                <tr key={`${row.account} ${row.currency}`}>
                  <th scope="row" class="account">{row.account.split(":").map((part, index) => <>{index > 0 && <>:<wbr /></>}{part}</>)}</th>
                  <td class="number">{money(row.balance_minor, row.currency)}</td>
                  <td class="number">{money(row.in_minor, row.currency)}</td><td class="number">{money(row.out_minor, row.currency)}</td>
                  <td class="number">{money(row.posted_minor, row.currency)}</td>
                </tr>
              ))}</tbody>
            </table>
          </div>
          <p class="hint">{t(sale === null ? "accounts-hint" : "settlement-hint")}</p>
        </div>
      ))}
    </section>
  );
}
