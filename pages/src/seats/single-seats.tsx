/** Which free seats a choice by hand leaves alone, and what may be taken instead. Nothing is refused for them. */
import type { Plan } from "../map/plan.ts";
import { seatLabel } from "./labels.ts";
import { words } from "./words.ts";

const { t } = words;

interface SingleSeatsProps {
  readonly plan: Plan;
  /** Each with the chosen seat to give up for it, where that leaves none alone. */
  readonly singles: readonly { readonly seat: number; readonly gone: number | undefined }[];
  readonly onReplace: (gone: number, by: number) => void;
}

/** The note. */
export function SingleSeats({ plan, singles, onReplace }: SingleSeatsProps) {
  return (
    <div class="notice single-seats" role="status">
      {singles.map(({ seat, gone }) => (
        <p key={seat}>
          <span>{t("single-left", { seat: seatLabel(plan, seat) })}</span>
          {gone !== undefined && <button type="button" class="quiet" onClick={() => onReplace(gone, seat)}>{t("single-instead", { seat: seatLabel(plan, seat), gone: seatLabel(plan, gone) })}</button>}
        </p>
      ))}
    </div>
  );
}
