/** What is said to a code: in words, with a sign and a colour. */
import { clockTime, shortDateTime } from "../shared/format.ts";
import { seatText } from "../shared/seat-place.ts";
import type { Claims } from "./code.ts";
import type { Verdict } from "./keeper.ts";
import type { Door } from "./store.ts";
import { t } from "./words.ts";

/** What a ticket is for: its seat, its tier by name, the journey on a train. */
function placeOf({ seat, tier, legs }: Claims, { tiers, stops, layout }: Door): string {
  const name = (id: string) => stops.find(({ stop }) => stop === id)?.name ?? id;
  const parts = [seat === null ? null : seatText(layout ?? null, seat), tiers.find((one) => one.tier === tier)?.name ?? tier, legs === null ? null : t("journey", { from: name(legs[0]), to: name(legs[1]) })];
  return parts.filter((part) => part !== null).join(" · ");
}

interface Said {
  readonly look: "yes" | "no" | "unclear";
  readonly title: string;
  readonly text: string;
  readonly claims: Claims | null;
}

/** What is said to a verdict. */
export function saidOf(verdict: Verdict | "failed" | "checking"): Said {
  if (verdict === "checking") {
    return { look: "unclear", title: t("checking"), text: "", claims: null };
  }
  if (verdict === "failed") {
    return { look: "unclear", title: t("failed-title"), text: t("failed-text"), claims: null };
  }
  switch (verdict.kind) {
    case "admitted": return { look: "yes", title: t("admitted"), text: t(verdict.isConfirmed ? "admitted-confirmed" : "admitted-unconfirmed"), claims: verdict.claims };
    case "already": return { look: "no", title: t("already"), text: t("already-text", { door: verdict.first.door, time: clockTime(verdict.first.atMs), day: shortDateTime(verdict.first.atMs) }), claims: verdict.claims };
    case "void": case "replaced": case "refused": return { look: "no", title: t(`not-${verdict.kind}`), text: t(`not-${verdict.kind}-text`), claims: verdict.claims };
    case "other-sale": return { look: "no", title: t("not-other-sale"), text: t("not-other-sale-text", { sale: verdict.claims.sale }), claims: null };
    case "other-deployment": case "unknown-key": return { look: "no", title: t("not-ours"), text: t("not-ours-text"), claims: null };
    case "not-signed": return { look: "no", title: t("not-signed"), text: t("not-signed-text"), claims: null };
    case "no-code": return { look: "unclear", title: t("no-code"), text: t("no-code-text"), claims: null };
  }
}

/** Signs as drawings: not every device has a font with them. */
const SIGNS = { yes: "M4 13l5 6L20 5", no: "M5 5l14 14M19 5L5 19", unclear: "M12 4v11M12 19v1.5" } as const;

/** What is shown before the first code. */
export const Ready = () => <div class="outcome ready"><p class="title">{t("ready")}</p></div>;

/** What is said, to be seen from afar. */
export function Outcome({ verdict, door }: { readonly verdict: Verdict | "failed" | "checking"; readonly door: Door }) {
  const { look, title, text, claims } = saidOf(verdict);
  return (
    <div class={`outcome ${look}`}>
      <svg class="sign" viewBox="0 0 24 24" aria-hidden="true"><path d={SIGNS[look]} /></svg>
      <div>
        <p class="title">{title}</p>
        {claims !== null && <p class="seat">{placeOf(claims, door)}</p>}
        {text !== "" && <p>{text}</p>}
        {claims !== null && <p class="small">{t("ticket", { order: claims.order, ticket: claims.ticket })}</p>}
      </div>
    </div>
  );
}
