/** Choosing on the map, or in the grid of a section. Loaded when somebody wants it. */
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";

import { prefersDark, tierColour } from "../map/colours.ts";
import { layOut } from "../map/lay-out.ts";
import type { Layout } from "../map/layout.ts";
import { insteadOfSingle, nearestFree, nearestTogether, singlesLeft } from "../map/nearest.ts";
import { type FileForMap, type Plan, indexByName, readPlan, sectionOf, tierOf } from "../map/plan.ts";
import { naturally } from "../map/rows.ts";
import { SeatMap } from "../map/seat-map.ts";
import { type Availability, CHOSEN, FREE, LOST, OFFERED, type Free, readAvailability, taken, writeStates } from "../map/state.ts";
import { watch } from "../map/watch.ts";
import { ask, everyone, problem, reply } from "../shared/api.ts";
import { clockTime, number } from "../shared/format.ts";
import { announce } from "../shared/live.ts";
import { WheelchairSign } from "../shared/wheelchair-sign.tsx";
import { Counter, type WayProps, leftOf } from "./best-form.tsx";
import { type ChosenSeat, mostTickets, ticketsIn } from "./choice.ts";
import { priceOf, priceText, seatLabel, sectionText } from "./labels.ts";
import { LostSeats } from "./lost-seats.tsx";
import { SingleSeats } from "./single-seats.tsx";
import { Tick, Whole } from "./icons.tsx";
import { SeatTip, type SeatTipProps } from "./seat-tip.tsx";
import { SectionGrid, stateWord } from "./section-grid.tsx";
import { words } from "./words.ts";

const { t, tn } = words;

interface MapWayProps extends WayProps {
  /** Names of chosen seats that were taken meanwhile. */
  readonly lost: ReadonlySet<string>;
  readonly onLost: (lost: ReadonlySet<string>) => void;
  readonly onAvailability: (availability: Availability) => void;
  /** True while an order is under way: what it holds is not lost. */
  readonly isOrdering: boolean;
}

/** The plan of a sale; null if its file and its grids do not go together. */
function planOf(sale: WayProps["sale"]): Plan | null {
  try {
    return readPlan(sale.file as unknown as FileForMap, sale.tiers);
  } catch {
    return null;
  }
}

/** The organiser's map; undefined if there is none, or it does not come. */
async function documentOf(sale: WayProps["sale"]): Promise<unknown> {
  const hash = (sale as { map?: { hash?: unknown } | null }).map?.hash;
  if (typeof hash !== "string") return undefined;
  try {
    return await (await ask(`/sales/${encodeURIComponent(sale.sale)}/map?v=${encodeURIComponent(hash)}`)).json();
  } catch {
    return undefined;
  }
}

/** The way by the map. */
export function MapWay(props: MapWayProps) {
  const plan = useMemo(() => planOf(props.sale), [props.sale]);
  return plan === null ? <p class="problem">{t("map-failed")}</p> : <Plotted {...props} plan={plan} />;
}

/** What is free, asked for as long as the map, or the grid beside it, is seen. */
function useFree({ sale, choice, onAvailability }: MapWayProps, plan: Plan, root: { current: HTMLElement | null }) {
  const [free, setFree] = useState<Free | undefined>(undefined);
  const [isStale, setStale] = useState(false);
  const asking = useRef<{ askNow(): void } | null>(null);
  const { from, to } = choice.journey ?? { from: undefined, to: undefined };
  useEffect(() => {
    if (root.current === null) return undefined;
    setFree(undefined);
    const query = from === undefined || to === undefined ? {} : { from, to };
    const watching = watch<Availability>({
      element: root.current,
      load: () => reply(everyone.GET("/sales/{sale}/availability", { params: { path: { sale: sale.sale }, query } })) as Promise<Availability>,
      onAnswer: (answer) => {
        setStale(false);
        setFree(readAvailability(plan, answer));
        onAvailability(answer);
      },
      onFailure: () => setStale(true),
      maxAgeSeconds: (answer) => answer.max_age_seconds,
      retryAfterSeconds: (thrown) => problem(thrown).retryAfterSeconds,
    });
    asking.current = watching;
    return () => watching.stop();
  }, [plan, from, to]);
  return { free, isStale, askNow: useCallback(() => asking.current?.askNow(), []) };
}

/** Draws the map into an element once the layout is known. */
function useDrawn(props: MapWayProps, plan: Plan, host: { current: HTMLDivElement | null }, events: { current: { onSeat(seat: number): void; onSection(section: number): void; onSpots(tier: number): void } }, tip: SeatTipProps["tell"]) {
  const [layout, setLayout] = useState<Layout | null>(null);
  const [map, setMap] = useState<SeatMap | null>(null);
  const [hasFailed, setFailed] = useState(false);
  useEffect(() => {
    let isOver = false;
    let made: SeatMap | null = null;
    void documentOf(props.sale).then((document) => {
      const element = host.current;
      if (isOver || element === null) return;
      const placed = layOut(plan, element.clientWidth / Math.max(1, element.clientHeight), { stage: t("stage"), pitch: t("pitch") }, document);
      setLayout(placed);
      try {
        made = new SeatMap(element, plan, placed, {
          onSeat: (seat) => events.current.onSeat(seat),
          onSection: (section) => events.current.onSection(section),
          onSpots: (tier) => events.current.onSpots(tier),
          onHover: (over) => tip.current(over),
          write: number,
        });
        setMap(made);
      } catch {
        setFailed(true);
      }
    });
    return () => {
      isOver = true;
      made?.dispose();
    };
  }, [plan]);
  return { layout, map, hasFailed };
}

/** Keeps what is lost in step with what is free: the choice itself stays. */
function useLost({ choice, lost, onLost, isOrdering }: MapWayProps, plan: Plan, free: Free | undefined, byName: Map<string, number>): void {
  useEffect(() => {
    if (free === undefined || isOrdering) return;
    const chosen = choice.seats.flatMap(({ seat }) => byName.get(seat) ?? []);
    const gone = new Set(taken(plan, free, chosen).map((seat) => plan.names[seat] ?? ""));
    const more = [...gone].filter((name) => !lost.has(name));
    const back = [...lost].filter((name) => !gone.has(name));
    if (more.length === 0 && back.length === 0) return;
    const label = (name: string): string => seatLabel(plan, byName.get(name) ?? 0);
    if (more.length > 0) announce(more.map((name) => t("lost-one", { seat: label(name) })).join(" "));
    else announce(back.filter((name) => byName.has(name)).map((name) => t("free-again", { seat: label(name) })).join(" "));
    onLost(gone);
  }, [free, choice.seats, isOrdering]);
}

/** What is chosen, lost and offered, and the state of each seat that follows. */
function usePicks({ choice, lost }: MapWayProps, plan: Plan, byName: Map<string, number>, free: Free | undefined, layout: Layout | null) {
  const indices = choice.seats.flatMap(({ seat }) => byName.get(seat) ?? []);
  const lostSeats = indices.filter((seat) => lost.has(plan.names[seat] ?? ""));
  const kept = indices.filter((seat) => !lostSeats.includes(seat));
  const pickKey = `${kept.join()}/${lostSeats.join()}`;
  const offered = useMemo(
    () => (free === undefined || layout === null ? [] : nearestFree(plan, layout.xy, layout.pitch, free, lostSeats, kept)),
    [free, layout, pickKey],
  );
  const together = useMemo(() => {
    const from = lostSeats[0];
    if (free === undefined || layout === null || from === undefined || indices.length < 2) return [];
    const widened = { ...free, bySeat: free.bySeat.slice() };
    for (const seat of kept) widened.bySeat[seat] = 1;
    return nearestTogether(plan, layout.xy, widened, from, indices.filter((seat) => tierOf(plan, seat) === tierOf(plan, from)).length);
  }, [free, layout, pickKey]);
  const singles = useMemo(
    () => (free === undefined || lostSeats.length > 0 ? [] : singlesLeft(plan, free, kept).map((seat) => ({ seat, gone: insteadOfSingle(plan, free, kept, seat) }))),
    [free, pickKey],
  );
  const states = useMemo(() => {
    const made = new Uint8Array(plan.seats);
    writeStates(plan, made, free, { chosen: new Set(kept), lost: new Set(lostSeats), offered: new Set(offered) });
    return made;
  }, [plan, free, pickKey, offered.join()]);
  return { kept, lostSeats, offered, together, singles, states };
}

/** Choosing a seat or giving it up, and taking others in the place of lost ones. */
function useChanges({ choice, terms, onChoice }: MapWayProps, plan: Plan, states: Uint8Array) {
  const toSeat = (seat: number): ChosenSeat => ({ tier: plan.tiers[tierOf(plan, seat)]?.id ?? "", seat: plan.names[seat] ?? "", label: seatLabel(plan, seat) });
  const most = mostTickets(terms);
  const toggle = (seat: number): void => {
    const name = plan.names[seat] ?? "";
    const state = states[seat];
    if (state === CHOSEN || state === LOST) {
      onChoice({ seats: choice.seats.filter((one) => one.seat !== name) });
      announce(t("unchose", { seat: seatLabel(plan, seat) }));
    } else if (state !== FREE && state !== OFFERED) {
      announce(`${seatLabel(plan, seat)}: ${stateWord(state ?? 6)}`);
    } else if (ticketsIn(choice) >= most) {
      announce(t("full", { count: most }));
    } else {
      onChoice({ seats: [...choice.seats, toSeat(seat)] });
      announce(t("chose", { seat: seatLabel(plan, seat) }));
    }
  };
  const replace = (gone: readonly number[], by: readonly number[]): void => {
    const names = new Set(gone.map((seat) => plan.names[seat]));
    onChoice({ seats: [...choice.seats.filter((one) => !names.has(one.seat)), ...by.map(toSeat)] });
    if (by.length > 0) announce(t("chose", { seat: by.map((seat) => seatLabel(plan, seat)).join("; ") }));
  };
  return { toggle, replace };
}

function Plotted(props: MapWayProps & { readonly plan: Plan }) {
  const { sale, plan, choice } = props;
  const host = useRef<HTMLDivElement>(null);
  const root = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState<number | undefined>(undefined);
  const byName = useMemo(() => indexByName(plan), [plan]);
  const { free, isStale, askNow } = useFree(props, plan, root);
  const events = useRef({ onSeat: (_: number) => {}, onSection: (_: number) => {}, onSpots: (_: number) => {} });
  const tip = useRef<SeatTipProps["tell"]["current"]>(() => {});
  const { layout, map, hasFailed } = useDrawn(props, plan, host, events, tip);
  useLost(props, plan, free, byName);

  const { kept, lostSeats, offered, together, singles, states } = usePicks(props, plan, byName, free, layout);
  useEffect(() => map?.setStates(states, { bySection: free?.bySection, byTier: free?.byTier }), [map, states]);
  useEffect(() => map?.setOpen(open), [map, open]);

  const { toggle, replace } = useChanges(props, plan, states);
  events.current = {
    onSeat: (seat) => { setOpen(sectionOf(plan, seat)); toggle(seat); },
    onSection: setOpen,
    onSpots: (tier) => document.getElementById(`spots-${plan.tiers[tier]?.id}`)?.querySelector<HTMLElement>("button:last-child")?.focus(),
  };
  const price = (tier: number): string => {
    const file = sale.file.tiers[tier];
    const minor = file === undefined ? null : priceOf(file, choice.journey);
    return minor === null ? t("not-on-journey") : priceText(minor, sale.file.currency);
  };
  return (
    <div class="map-way" ref={root}>
      {lostSeats.length > 0 && (
        <LostSeats
          plan={plan} lost={lostSeats} offered={offered} together={together} onReplace={(gone, by) => { replace(gone, by); askNow(); }}
          onTogether={() => replace([...kept, ...lostSeats].filter((seat) => tierOf(plan, seat) === tierOf(plan, together[0] ?? 0)), together)}
          onShow={(seats) => map?.goToSeats(seats)}
        />
      )}
      {singles.length > 0 && <SingleSeats plan={plan} singles={singles} onReplace={(gone, by) => replace([gone], [by])} />}
      {plan.sections.length > 0 && <SectionChoice plan={plan} free={free} open={open} price={price} onOpen={(section) => { setOpen(section); map?.goToSection(section); }} />}
      <div class="map-frame" hidden={hasFailed}>
        <div class="map-host" ref={host} aria-hidden="true" data-ready={map !== null && free !== undefined ? "yes" : "no"}>
          {map === null && <p class="loading">{t("map-loading")}</p>}
        </div>
        <div class="map-tools" role="group" aria-label={t("map")}>
          <button type="button" aria-label={t("zoom-in")} title={t("zoom-in")} onClick={() => map?.zoom(1.7)}>+</button>
          <button type="button" aria-label={t("zoom-out")} title={t("zoom-out")} onClick={() => map?.zoom(1 / 1.7)}>−</button>
          <button type="button" aria-label={t("zoom-all")} title={t("zoom-all")} onClick={() => map?.fit()}><Whole /></button>
        </div>
        <SeatTip tell={tip} map={host} wordsOf={(seat) => ({ name: seatLabel(plan, seat), about: [plan.tiers[tierOf(plan, seat)]?.name, price(tierOf(plan, seat)), stateWord(states[seat] ?? 6)].join(" · ") })} />
        <p class="map-caption" aria-hidden="true">{t("map-help")}</p>
      </div>
      {hasFailed && <p class="notice warn">{t("map-failed")}</p>}
      <p class={isStale ? "notice warn" : "hint as-of"} role={isStale ? "status" : undefined}>
        {isStale ? t("stale") : props.availability === null ? t("left-unknown") : t("as-of", { at: clockTime(props.availability.as_of) })}
      </p>
      <Legend {...props} />
      <Spots {...props} />
      {open !== undefined && <SectionGrid plan={plan} section={open} states={states} price={price(plan.sections[open]?.tier ?? 0)} onSeat={toggle} />}
    </div>
  );
}

/** The list of sections: what people go by who do not use the canvas. */
function SectionChoice({ plan, free, open, price, onOpen }: { readonly plan: Plan; readonly free: Free | undefined; readonly open: number | undefined; readonly price: (tier: number) => string; readonly onOpen: (section: number) => void }) {
  const word = plan.isTrain ? "coach" : "section";
  return (
    <div class="field section-choice">
      <label for="section">{t(word)}</label>
      <select id="section" value={open === undefined ? "" : String(open)} onChange={(event) => event.currentTarget.value !== "" && onOpen(Number(event.currentTarget.value))}>
        <option value="">{t(`${word}-choose`)}</option>
        {plan.tiers.map((tier, index) => {
          const sections = [...plan.sections.entries()].filter(([, section]) => section.tier === index).sort(([, one], [, other]) => naturally(one.name, other.name));
          return sections.length === 0 ? null : (
            <optgroup label={tier.name} key={tier.id}>
              {sections.map(([at]) => {
                const section = sectionText(plan, at, price(index));
                return <option value={at} key={at}>{free === undefined ? section : t("section-left", { section, count: free.bySection[at] ?? 0 })}</option>;
              })}
            </optgroup>
          );
        })}
      </select>
    </div>
  );
}

/** Colours of categories with prices and what is left, and the looks of seats. */
function Legend({ sale, choice, availability }: WayProps) {
  const [isDark, setDark] = useState(prefersDark);
  useEffect(() => {
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const look = (): void => setDark(scheme.matches);
    scheme.addEventListener("change", look);
    return () => scheme.removeEventListener("change", look);
  }, []);
  return (
    <section class="legend" aria-labelledby="legend-title">
      <h2 id="legend-title" class="unseen">{t("legend")}</h2>
      <ul class="tiers">
        {sale.file.tiers.map((tier, index) => {
          const price = priceOf(tier, choice.journey);
          const left = leftOf(tier, availability);
          return (
            <li key={tier.tier}>
              <span class="swatch" aria-hidden="true" style={{ backgroundColor: tierColour(index, isDark) }} />
              <span class="name"><WheelchairSign of={tier.name} />{tier.name}</span>
              <span class="hint">{price === null ? t("not-on-journey") : `${priceText(price, sale.file.currency)}${left === null ? "" : ` · ${left === 0 ? t("sold-out") : tn("left", left)}`}`}</span>
            </li>
          );
        })}
      </ul>
      {sale.file.tiers.some((tier) => (tier.sections ?? []).length > 0) && <ul class="looks">
        {(["free", "taken", "withheld", "chosen", "lost", "offered"] as const).map((look) => (
          <li key={look}><span class={`seat small ${look}`} aria-hidden="true">{look === "chosen" ? <Tick /> : look === "lost" ? "×" : look === "offered" ? "→" : ""}</span>{t(`legend.${look}`)}</li>
        ))}
      </ul>}
    </section>
  );
}

/** Standing places: a number of each category. */
function Spots({ sale, terms, choice, availability, onChoice }: WayProps) {
  const most = mostTickets(terms);
  const tiers = sale.file.tiers.filter((tier) => tier.general_admission && priceOf(tier, choice.journey) !== null);
  return (
    <>
      {tiers.map((tier) => {
        const count = choice.spots[tier.tier] ?? 0;
        const left = leftOf(tier, availability) ?? 0;
        const mostOfIt = Math.min(left, count + Math.max(0, most - ticketsIn(choice)));
        const set = (value: number): void => onChoice({ spots: { ...choice.spots, [tier.tier]: value } });
        return (
          <div class="spots card" id={`spots-${tier.tier}`} key={tier.tier}>
            <span><strong>{tier.name}</strong> <span class="hint">{priceText(priceOf(tier, choice.journey) ?? 0, sale.file.currency)} · {left === 0 ? t("sold-out") : tn("left", left)}</span></span>
            <Counter value={count} least={0} most={mostOfIt} label={t("spots-of", { tier: tier.name })} onValue={set} />
          </div>
        );
      })}
    </>
  );
}
