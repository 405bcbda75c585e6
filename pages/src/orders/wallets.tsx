/** The buyer's wallets: what they have, and what has moved them last. */
import { useNames } from "../order/sale.ts";
import { buyer, reply, type Schemas } from "../shared/api.ts";
import { money, shortDateTime } from "../shared/format.ts";
import { useLoaded } from "../shared/hooks.ts";
import { t } from "./words.ts";

/** Changes of a wallet that are shown. */
const SHOWN = 10;

/** Nothing for a buyer who never had one. The orders tell of each change, too: where this cannot be loaded it is left out. */
export function Wallets() {
  const { data } = useLoaded(() => reply(buyer.GET("/wallets")), null, []);
  return <>{(data?.wallets ?? []).map((wallet) => <Wallet key={wallet.currency} {...wallet} />)}</>;
}

function Wallet({ currency, balance_minor, entries }: Schemas["WalletReply"]) {
  const title = `wallet-${currency}`;
  return (
    <section aria-labelledby={title}>
      <h2 id={title}>{t("wallet.title")}</h2>
      <div class="card scroll">
        <p>{t(balance_minor < 0 ? "wallet.owes" : "wallet.has", { has: money(Math.abs(balance_minor), currency) })}</p>
        <table class="wallet">
          <thead><tr>
            <th scope="col">{t("wallet.what")}</th><th scope="col">{t("wallet.when")}</th><th scope="col" class="number">{t("wallet.amount")}</th>
          </tr></thead>
          <tbody>{entries.slice(0, SHOWN).map((entry) => <Entry key={`${entry.order}-${entry.kind}-${entry.at}`} entry={entry} currency={currency} />)}</tbody>
        </table>
      </div>
    </section>
  );
}

function Entry({ entry, currency }: { readonly entry: Schemas["WalletEntryReply"]; readonly currency: string }) {
  const names = useNames(entry.sale);
  return (
    <tr>
      <th scope="row">{t(`wallet.${entry.kind}`)}: <a href={`#order-${entry.order}`}>{names.title}</a></th>
      <td>{shortDateTime(entry.at)}</td>
      <td class="number">{money(entry.amount_minor, currency)}</td>
    </tr>
  );
}
