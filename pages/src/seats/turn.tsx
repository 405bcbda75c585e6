/** The turn of a buyer: its clock, which the first use of the page sets going, and what to do when it is over. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { buyer, problem, reply } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { countdown } from "../shared/format.ts";
import { useNow } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { announce } from "../shared/live.ts";
import { keptPlace } from "../shared/place.ts";
import { session } from "../shared/session.ts";
import type { Sale } from "./labels.ts";
import { AGAIN_MS, type KeptVisit, type Turn, keepVisit, keptVisit, overBy, turnOf } from "./turn.ts";
import { words } from "./words.ts";

const { t } = words;
/** What counts as using the page. A page that was opened while nobody looks gets none of these. */
const USES = ["pointerdown", "keydown", "touchstart"] as const;
/** Seconds that a place waits for its buyer unless the sale says otherwise (docs/sale-file.md). */
const SHOW_UP_SECONDS = 180;

/** The turn of the place that is kept here; null if the sale has no room, or no place is drawn. */
export function useTurn(sale: Sale): Turn | null {
  const room = sale.file.room ?? null;
  const place = room === null ? null : keptPlace(sale.sale);
  const claim = place === null || place.place === null ? null : { group: place.group, place: place.place, token: place.token };
  const [visit, setVisit] = useState<KeptVisit | null>(() => (place === null ? null : keptVisit(sale.sale, place)));
  const [over, setOver] = useState<Turn & { kind: "over" } | null>(null);
  const isAsking = useRef(false);
  const nextAt = useRef(0);
  const now = useNow(1_000);

  /** Asks when the visit ends, which begins it if it has not begun. */
  const ask = useCallback(async (): Promise<void> => {
    if (claim === null || isAsking.current || performance.now() < nextAt.current || session("buyers") === null) return;
    isAsking.current = true;
    nextAt.current = performance.now() + AGAIN_MS;
    try {
      const { ends_at } = await reply(buyer.POST("/sales/{sale}/visits", { params: { path: { sale: sale.sale } }, body: { place: claim } }));
      const begun = { token: claim.token, endsAtMs: Date.parse(ends_at) };
      keepVisit(sale.sale, begun);
      setVisit(begun);
    } catch (thrown) {
      // What is refused for now, or was not answered, is tried again at the next use; an order begins the visit too.
      setOver(overBy(problem(thrown)));
    }
    isAsking.current = false;
  }, [claim?.token, claim?.place]);

  const hasBegun = visit !== null;
  useEffect(() => {
    if (claim === null || hasBegun || over !== null) return undefined;
    const use = (event: Event): void => {
      if (event.isTrusted) void ask();
    };
    for (const name of USES) document.addEventListener(name, use, { capture: true, passive: true });
    return () => {
      for (const name of USES) document.removeEventListener(name, use, { capture: true });
    };
  }, [ask, hasBegun, over !== null]);
  const turn = place === null || claim === null ? null : turnOf(place, visit, room?.show_up_seconds ?? SHOW_UP_SECONDS, over, now);
  // A pause of the room puts the end off: whether it is over, the engine says.
  const isEnd = turn?.kind === "visit" && turn.endsAtMs <= clock.nowMs();
  useEffect(() => {
    if (isEnd) void ask();
  }, [isEnd, ask, isEnd && Math.floor(now / 5_000)]);
  const isEnding = turn?.kind === "visit" && turn.isEnding;
  useEffect(() => {
    if (isEnding) announce(t("turn.ending"));
  }, [isEnding]);
  return turn;
}

/** The clock of a turn, and what to do when it is over. */
export function TurnClock({ sale, turn }: { readonly sale: Sale; readonly turn: Turn }) {
  const room = `/s/${encodeURIComponent(sale.sale)}/room`;
  if (turn.kind === "over") {
    return (
      <div class="notice warn turn" role="status">
        <p>{t(`room.${turn.slug}`)}</p>
        <p><a class="button" href={href(`${room}?again=1`)}>{t("to-room")}</a></p>
      </div>
    );
  }
  if (turn.endsAtMs === null) return <p class="notice turn">{t("turn.begin")}</p>;
  const left = countdown(Math.max(0, turn.endsAtMs - clock.nowMs()));
  if (turn.kind === "unused") return <p class="notice warn turn">{t("turn.unused")} <span class="count" role="timer">{left}</span></p>;
  return (
    <p class={turn.isEnding ? "notice warn turn" : "notice turn"}>
      {t("turn.visit")} <span class="count" role="timer">{left}</span>
      {turn.isEnding && <> {t("turn.ending")}</>}
    </p>
  );
}
