/** The map of a sale file, as buyers will see it. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { tierColour, prefersDark } from "../map/colours.ts";
import { layOut } from "../map/lay-out.ts";
import { SeatMap } from "../map/seat-map.ts";
import { FREE, WITHHELD } from "../map/state.ts";
import { number } from "../shared/format.ts";
import { planOf, type SaleFile } from "./sale-file.ts";
import { t, tn } from "./words.ts";

/** Draws the map of a file, or says why there is none. */
export function Drawn({ file }: { readonly file: SaleFile }) {
  const host = useRef<HTMLDivElement>(null);
  const [map, setMap] = useState<SeatMap | null>(null);
  const [hasFailed, setFailed] = useState(false);
  const plan = useMemo(() => planOf(file), [file]);
  useEffect(() => {
    const element = host.current;
    if (plan === null || plan.seats === 0 || element === null) {
      return undefined;
    }
    let made: SeatMap | null = null;
    try {
      const layout = layOut(plan, element.clientWidth / Math.max(1, element.clientHeight), { stage: t("publish-stage"), pitch: t("publish-pitch") }, file.map ?? undefined);
      made = new SeatMap(element, plan, layout, { onSeat() {}, onSection: (section) => made?.goToSection(section), onSpots() {}, onHover() {}, write: number });
      made.setStates(plan.withheld.map((isWithheld) => (isWithheld === 1 ? WITHHELD : FREE)), { bySection: Uint32Array.from(plan.sections, ({ seats }) => seats), byTier: Int32Array.from(plan.tiers, ({ spots }) => spots) });
      setMap(made);
    } catch {
      setFailed(true);
    }
    return () => made?.dispose();
  }, [plan, file]);
  if (plan === null || hasFailed) {
    return <p class="notice warn">{t("publish-map-none")}</p>;
  }
  if (plan.seats === 0) {
    return <p class="hint">{t("publish-map-spots")}</p>;
  }
  return (
    <>
      <p class="hint">{t("publish-map-hint")}</p>
      <div class="preview">
        <div class="preview-host" ref={host} />
        {map !== null && (
          <div class="preview-tools">
            <button type="button" aria-label={t("publish-zoom-in")} onClick={() => map.zoom(1.5)}>+</button>
            <button type="button" aria-label={t("publish-zoom-out")} onClick={() => map.zoom(1 / 1.5)}>−</button>
            <button type="button" aria-label={t("publish-fit")} onClick={() => map.fit()}><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M3 9V3h6M21 9V3h-6M3 15v6h6M21 15v6h-6" /></svg></button>
          </div>
        )}
      </div>
      <ul class="legend tiers-of-map">
        {plan.tiers.map((tier, at) => <li key={tier.id}><span class="swatch" style={{ background: tierColour(at, prefersDark()) }} />{tier.name}</li>)}
      </ul>
      <p class="hint">{tn("publish-places", plan.seats)}</p>
    </>
  );
}
