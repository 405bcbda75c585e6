/** Where the seat of a ticket is, each part by itself: to be found in the dark, and read out. */
import type { Names } from "../order/sale.ts";
import { words } from "../order/words.ts";

const { t } = words;

/** Section, row and seat, or coach and seat; the name of the seat where its layout is not known. */
export function Where({ seat, names }: { readonly seat: string; readonly names: Names }) {
  const place = names.place(seat);
  return (
    <dl class="where">
      {place !== null && <div><dt>{t(place.row === null ? "coach" : "section")}</dt><dd>{place.section}</dd></div>}
      {place !== null && place.row !== null && <div><dt>{t("row")}</dt><dd>{place.row}</dd></div>}
      <div><dt>{t("seat")}</dt><dd>{place?.seat ?? seat}</dd></div>
    </dl>
  );
}
