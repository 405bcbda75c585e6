/** Who uses the tickets, where the sale wants it or allows it. */
import { type Choice, type Terms, ticketTiers } from "./choice.ts";
import type { Sale } from "./labels.ts";
import { words } from "./words.ts";

const { t } = words;

/** A field for each ticket. */
export function Attendees({ sale, terms, choice, onChoice }: {
  readonly sale: Sale; readonly terms: Terms; readonly choice: Choice; readonly onChoice: (change: Partial<Choice>) => void;
}) {
  const tiers = ticketTiers(choice);
  if (tiers.length === 0) return null;
  const set = (at: number, name: string): void => onChoice({ attendees: Array.from({ length: Math.max(tiers.length, choice.attendees.length) }, (_, one) => (one === at ? name : choice.attendees[one] ?? "")) });
  const fields = (
    <>
      <p class="hint" id="attendees-hint">{t("attendees-hint")}</p>
      {tiers.map((tier, at) => (
        <div class="field" key={at}>
          <label for={`attendee-${at}`}>{t("attendee", { number: at + 1, tier: sale.file.tiers.find((one) => one.tier === tier)?.name ?? tier })}</label>
          <input
            id={`attendee-${at}`} autocomplete="off" maxLength={64} required={terms.attendees === "required"} aria-describedby="attendees-hint"
            value={choice.attendees[at] ?? ""} onInput={(event) => set(at, event.currentTarget.value)}
          />
        </div>
      ))}
    </>
  );
  return terms.attendees === "required"
    ? <fieldset><legend>{t("attendees")}</legend>{fields}</fieldset>
    : <details class="card"><summary>{t("attendees-optional")}</summary>{fields}</details>;
}
