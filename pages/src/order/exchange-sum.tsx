/** What an exchange does to the buyer's money, row by row: before it is made, and after. */
import type { ComponentChildren } from "preact";

import "./confirm.css";
import { money } from "../shared/format.ts";
import type { ExchangeSums } from "./exchange.ts";
import { providerName, words } from "./words.ts";

const { t } = words;

interface ExchangeSumProps {
  readonly sums: ExchangeSums;
  readonly currency: string;
  /** Who took the money for the tickets that are given: what goes back goes there. */
  readonly provider: string | null;
  /** What explains the rows, before the way back. */
  readonly children?: ComponentChildren;
}

/** The rows, and the way back. */
export function ExchangeSum({ sums, currency, provider, children }: ExchangeSumProps) {
  const amount = (minor: number): string => money(minor, currency);
  return (
    <>
      <dl class="sum">
        <dt>{t("sums.price")}</dt><dd>{amount(sums.priceMinor)}</dd>
        <dt>{t("sums.fee")}</dt><dd>−{amount(sums.feeMinor)}</dd>
        {sums.goneMinor > 0 && <><dt>{t("sums.gone")}</dt><dd>−{amount(sums.goneMinor)}</dd></>}
        <dt class="total">{t("sums.worth")}</dt><dd class="total">{amount(sums.worthMinor)}</dd>
        <dt>{t("sums.new")}</dt><dd>{amount(sums.newMinor)}</dd>
        <dt class="total">{t("sums.charged")}</dt><dd class="total">{sums.chargedMinor === 0 ? t("sums.nothing") : amount(sums.chargedMinor)}</dd>
        <dt class="strong">{t(sums.pays ? "sums.back" : "sums.back-after")}</dt><dd class="strong">{sums.backMinor === 0 ? t("sums.nothing") : amount(sums.backMinor)}</dd>
        {!sums.pays && sums.backMinor > 0 && <><dt>{t("sums.difference")}</dt><dd>{amount(sums.newMinor - sums.worthMinor)}</dd></>}
      </dl>
      {children}
      {sums.backMinor > 0 && provider !== null && <p>{t("sums.way-back", { amount: amount(sums.backMinor), provider: providerName(provider) })}</p>}
    </>
  );
}
