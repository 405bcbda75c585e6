/** The texts of the checkout page. */
import en from "../i18n/checkout.en.json";
import zh from "../i18n/checkout.zh.json";
import type { OnsaleProblem } from "../shared/api.ts";
import { texts } from "../shared/text.ts";
import { providerName, refusalText } from "../order/words.ts";

/** Texts by key. */
export const words = texts(en, zh);
const { t } = words;

/** The words of a refusal of a payment. */
export function paymentText(problem: OnsaleProblem): string {
  switch (problem.slug) {
    case "wallet-short": case "payment-over": case "payment-not-offered": case "payment-being-closed": case "too-many-payments": case "payment-not-started": case "order-resolved":
      return t(`problem.${problem.slug}`);
    default: return refusalText(problem);
  }
}

/** A way to pay, as buyers choose it. */
export const choiceName = (provider: string): string => (provider === "stripe" ? t("provider-choice.stripe") : providerName(provider));
