/** The event and the map of a sale file, as buyers will see them. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { AboutEvent, FirstPicture, WhenAndWhere } from "../event/invitation.tsx";
import { tierColour, prefersDark } from "../map/colours.ts";
import { layOut } from "../map/lay-out.ts";
import { SeatMap } from "../map/seat-map.ts";
import { FREE, WITHHELD } from "../map/state.ts";
import { eventWords } from "../shared/event.ts";
import { number } from "../shared/format.ts";
import { documentIn, eventIn, type MadePicture } from "./event-file.ts";
import { planOf, type SaleFile } from "./sale-file.ts";
import { t, tn } from "./words.ts";

/** What buyers will read and see of the event; a picture that was chosen here is shown as it will be sent. */
export function Invitation({ file, made }: { readonly file: SaleFile; readonly made: ReadonlyMap<string, MadePicture> }) {
  const [addresses, setAddresses] = useState<ReadonlyMap<string, string>>(new Map());
  useEffect(() => {
    const all = new Map([...made.values()].map(({ sha256, bytes }) => [sha256, URL.createObjectURL(new Blob([bytes], { type: "image/jpeg" }))]));
    setAddresses(all);
    return () => all.forEach((address) => URL.revokeObjectURL(address));
  }, [made]);
  const [event, about] = [eventIn(file), documentIn(file, made)];
  // Nobody has checked the file: what is wrong in its stops is not shown.
  const stops = (Array.isArray(file.stops) ? file.stops : []).filter((stop) => typeof stop?.name === "string");
  const sale = { title: file.sale, event: event ?? null, file: { tiers: [], stops, runs_on: typeof file.runs_on === "string" ? file.runs_on : null, event: event ?? null } };
  const shown = about?.images?.filter(({ sha256 }) => addresses.has(sha256) || ![...made.values()].some((one) => one.sha256 === sha256)) ?? [];
  const document = about === null ? null : { ...about, images: shown };
  return (
    <>
      <FirstPicture event={event} about={document} addresses={addresses} />
      <WhenAndWhere sale={sale} from={null} to={null} />
      {event?.category != null && <p class="hint">{eventWords.t(`category.${event.category}`)}</p>}
      <AboutEvent event={event} about={document} addresses={addresses} />
    </>
  );
}

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
