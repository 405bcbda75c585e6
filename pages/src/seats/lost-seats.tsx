/** Which chosen seats were taken meanwhile, and what may be had in their place. */
import type { Plan } from "../map/plan.ts";
import { seatLabel } from "./labels.ts";
import { words } from "./words.ts";

const { t, tn } = words;

interface LostSeatsProps {
  readonly plan: Plan;
  readonly lost: readonly number[];
  /** In place of each lost one, as far as there are any. */
  readonly offered: readonly number[];
  /** As many as were chosen, side by side; empty if there are none. */
  readonly together: readonly number[];
  readonly onReplace: (gone: readonly number[], by: readonly number[]) => void;
  readonly onTogether: () => void;
  readonly onShow: (seats: readonly number[]) => void;
}

/** The panel. */
export function LostSeats({ plan, lost, offered, together, onReplace, onTogether, onShow }: LostSeatsProps) {
  const label = (seat: number): string => seatLabel(plan, seat);
  return (
    <section class="notice warn lost-seats" aria-labelledby="lost-title">
      <h2 id="lost-title">{tn("lost-title", lost.length)}</h2>
      <p>{t("lost-text")}</p>
      <ul>
        {lost.map((seat, at) => {
          const instead = offered[at];
          return (
            <li key={seat}>
              <p><s>{label(seat)}</s>{instead === undefined ? ` · ${t("lost-none")}` : ""}</p>
              <p class="actions">
                {instead !== undefined && <button type="button" onClick={() => onReplace([seat], [instead])}>{t("take-instead", { seat: label(instead) })}</button>}
                <button type="button" class="quiet" onClick={() => onReplace([seat], [])}>{t("give-up-lost")}</button>
              </p>
            </li>
          );
        })}
      </ul>
      <p class="actions">
        {lost.length > 1 && offered.length === lost.length && <button type="button" class="primary" onClick={() => onReplace(lost, offered)}>{t("take-all-instead")}</button>}
        {together[0] !== undefined && <button type="button" onClick={() => { onShow(together); onTogether(); }}>{tn("take-together", together.length, { seat: label(together[0]) })}</button>}
      </p>
    </section>
  );
}
