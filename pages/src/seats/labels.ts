/** What seats and prices are called on this page. */
import type { Schemas } from "../shared/api.ts";
import { money } from "../shared/format.ts";
import { placeIn, placeText } from "../shared/seat-place.ts";
import { type Plan, letterOf, rowLabel, sectionOf } from "../map/plan.ts";
import type { Journey } from "./choice.ts";
import { words } from "./words.ts";

const { t } = words;

/** A sale, as the API shows it. */
export type Sale = Schemas["SaleReply"];
/** A tier of its file. */
export type Tier = Sale["file"]["tiers"][number];

/** A seat's section, row and number. */
export function seatLabel(plan: Plan, seat: number): string {
  const section = plan.sections[sectionOf(plan, seat)]?.name ?? "";
  return placeText(placeIn(plan.isTrain, section, rowLabel(plan, seat), plan.names[seat] ?? "", letterOf(plan, seat)));
}

/** A section with its category, which sections of one name differ in, and the price; once where the category's name begins with the section's. */
export function sectionText(plan: Plan, section: number, price: string): string {
  const name = plan.sections[section]?.name ?? "";
  const tier = plan.tiers[plan.sections[section]?.tier ?? 0]?.name ?? "";
  return tier === name || tier.startsWith(`${name},`) ? t("section-of-its-name", { section: tier, price }) : t("section-of", { section: name, tier, price });
}

/** The price of a tier on a journey; null if it is not sold there. */
export function priceOf(tier: Tier, journey: Journey | null): number | null {
  if (typeof tier.price_minor === "number") return tier.price_minor;
  return (tier.fares ?? []).find((fare) => fare.from === journey?.from && fare.to === journey.to)?.price_minor ?? null;
}

/** A price in words: what costs nothing is free. */
export const priceText = (minor: number, currency: string): string => (minor === 0 ? t("free-of-charge") : money(minor, currency));
