/** The best seats that are left: a category, a number, and whether they are side by side. The primary way. */
import type { Availability } from "../map/state.ts";
import { number } from "../shared/format.ts";
import { WheelchairSign } from "../shared/wheelchair-sign.tsx";
import { type Choice, type Terms, mostTickets } from "./choice.ts";
import { type Sale, type Tier, priceOf, priceText } from "./labels.ts";
import { words } from "./words.ts";

const { t, tn } = words;

/** What the ways of choosing are given. */
export interface WayProps {
  readonly sale: Sale;
  readonly terms: Terms;
  readonly choice: Choice;
  readonly availability: Availability | null;
  readonly onChoice: (change: Partial<Choice>) => void;
}

/** What is left of a tier: a number, 0 if it does not sell the journey, null while nothing is known. */
export function leftOf(tier: Tier, availability: Availability | null): number | null {
  if (availability === null) return null;
  return availability.tiers.find((one) => one.tier === tier.tier)?.available ?? 0;
}

/** Categories as cards, one of which is chosen. */
export function Categories({ sale, choice, availability, onChoice, only, label }: WayProps & { readonly only?: (tier: Tier) => boolean; readonly label: string }) {
  const tiers = sale.file.tiers.filter((tier) => only === undefined || only(tier));
  return (
    <fieldset class="categories">
      <legend>{label}</legend>
      {tiers.map((tier) => {
        const price = priceOf(tier, choice.journey);
        const left = leftOf(tier, availability);
        const isOut = price === null || left === 0;
        const note = price === null ? t("not-on-journey") : left === null ? t("left-unknown") : left === 0 ? t("sold-out") : tn("left", left);
        return (
          <label class={`category${isOut ? " out" : ""}`} key={tier.tier}>
            <input type="radio" name="tier" value={tier.tier} disabled={isOut} checked={choice.tier === tier.tier} onChange={() => onChoice({ tier: tier.tier })} />
            <span class="what">
              <span class="name"><WheelchairSign of={tier.name} />{tier.name}</span>
              {tier.general_admission ? <span class="hint">{t("standing")}</span> : null}
            </span>
            <span class="price">{price === null ? "–" : priceText(price, sale.file.currency)}</span>
            <span class={`left${left !== null && left > 0 && left < 20 ? " few" : ""}`}>{note}</span>
          </label>
        );
      })}
    </fieldset>
  );
}

/** A number of tickets between one and the most. */
export function Counter({ value, most, label, onValue, least = 1 }: {
  readonly value: number; readonly most: number; readonly label: string; readonly onValue: (value: number) => void; readonly least?: number;
}) {
  return (
    <div class="counter" role="group" aria-label={label}>
      <button type="button" aria-label={`${label}: ${t("fewer")}`} disabled={value <= least} onClick={() => onValue(value - 1)}>−</button>
      <output aria-live="polite">{number(value)}</output>
      <button type="button" aria-label={`${label}: ${t("more")}`} disabled={value >= most} onClick={() => onValue(value + 1)}>+</button>
    </div>
  );
}

/** The form. */
export function BestForm(props: WayProps) {
  const { sale, terms, choice, onChoice } = props;
  const tier = sale.file.tiers.find((one) => one.tier === choice.tier);
  const isSeated = tier === undefined || !tier.general_admission;
  return (
    <>
      <p class="hint">{t("best-hint")}</p>
      <Categories {...props} label={t("category")} />
      <div class="how-many">
        <div>
          <p class="label" id="how-many">{t("how-many")}</p>
          <Counter value={choice.count} most={Math.max(1, mostTickets(terms))} label={t("how-many")} onValue={(count) => onChoice({ count })} />
        </div>
        {isSeated && choice.count > 1 && (
          <label class="check">
            <input type="checkbox" checked={choice.isTogether} onChange={(event) => onChoice({ isTogether: event.currentTarget.checked })} />
            <span>{t("together")}<span class="hint">{t("together-hint")}</span></span>
          </label>
        )}
      </div>
    </>
  );
}
