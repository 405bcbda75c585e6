/** The turn of a buyer: its clock, which the first use of the page sets going, and what to do when it is over. */
import { useEffect, useRef, useState } from "preact/hooks";

import { standing, type RoomDocument } from "../room/standing.ts";
import { buyer, everyone, problem, reply } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { countdown } from "../shared/format.ts";
import { useNow, useSession } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { announce } from "../shared/live.ts";
import { isAnothers, keepPlace, keptPlace, type KeptPlace } from "../shared/place.ts";
import { subjectOf } from "../shared/session.ts";
import type { Sale } from "./labels.ts";
import { type KeptVisit, type Turn as TurnState, isFinal, keepVisit, keptVisit, pauseMs, turnOf } from "./turn.ts";
import { words } from "./words.ts";

const { t } = words;
/** What counts as using the page. A page that was opened while nobody looks gets none of these. */
const USES = ["pointerdown", "keydown", "touchstart", "click"] as const;
/** Seconds that a place waits for its buyer unless the sale says otherwise (docs/sale-file.md). */
const SHOW_UP_SECONDS = 180;
/** Milliseconds between looks at the room while the place is not due. */
const LOOK_AGAIN_MS = 15_000;

/** The clock of the buyer's turn: nothing at a sale without a room, and nothing while the place is not due. */
export function Turn({ sale }: { readonly sale: Sale }) {
  const now = useNow(1_000);
  const signedIn = useSession("buyers");
  const kept = sale.file.room == null ? null : keptPlace(sale.sale);
  if (kept === null || kept.place === null || signedIn === null || isAnothers(kept, subjectOf(signedIn.token))) return null;
  // Another membership has another turn.
  return <TurnOf key={kept.token} sale={sale} kept={kept} place={kept.place} now={now} />;
}

/** Whether a place is due, or was, by the room document; looks again while it is not. */
function useDue(sale: Sale, kept: KeptPlace): boolean {
  const [isDue, setIsDue] = useState(kept.dueAtMs !== undefined);
  useEffect(() => {
    if (isDue) return undefined;
    const look = async (): Promise<void> => {
      if (document.hidden) return;
      const room = (await reply(everyone.GET("/sales/{sale}/room", { params: { path: { sale: sale.sale } } }))) as RoomDocument;
      const group = room.groups.find((one) => one.group === kept.group);
      const stands = group === undefined ? undefined : standing(room, group, kept.index, kept.place, clock.nowMs()).kind;
      if (stands === "due") keepPlace({ ...kept, dueAtMs: clock.nowMs() });
      setIsDue(stands === "due" || stands === "passed");
    };
    // Without an answer the next look says.
    const tick = (): void => void look().catch(() => undefined);
    const timer = setInterval(tick, LOOK_AGAIN_MS);
    tick();
    return () => clearInterval(timer);
  }, [isDue]);
  return isDue;
}

/** Begins the visit at the first use of the page, and repeats the request until it is answered. */
function TurnOf({ sale, kept, place, now }: { readonly sale: Sale; readonly kept: KeptPlace; readonly place: number; readonly now: number }) {
  const isDue = useDue(sale, kept);
  const [begun, setBegun] = useState<KeptVisit | null>(null);
  const [refusedBy, setRefusedBy] = useState<string | null>(null);
  const [isUsed, setIsUsed] = useState(false);
  const request = useRef({ isUnderWay: false, failures: 0, nextAtMs: 0, endsAtMs: 0 });
  // Another tab may have begun it, or asked again after a pause.
  const visit = keptVisit(sale.sale, kept.token) ?? begun;
  const turn = turnOf({ visit, isDue, dueAtMs: keptPlace(sale.sale)?.dueAtMs, showUpSeconds: sale.file.room?.show_up_seconds ?? SHOW_UP_SECONDS, refusedBy }, now);

  const ask = async (): Promise<void> => {
    const one = request.current;
    // What is drawn may be older than the answer: whoever draws once more before that is shown asks for nothing new.
    if (one.isUnderWay || performance.now() < one.nextAtMs || clock.nowMs() < one.endsAtMs) return;
    one.isUnderWay = true;
    try {
      const body = { place: { group: kept.group, place, token: kept.token } };
      const { ends_at } = await reply(buyer.POST("/sales/{sale}/visits", { params: { path: { sale: sale.sale } }, body }));
      const visit = { token: kept.token, endsAtMs: Date.parse(ends_at) };
      keepVisit(sale.sale, visit);
      setBegun(visit);
      one.failures = 0;
      one.nextAtMs = 0;
      one.endsAtMs = visit.endsAtMs;
    } catch (thrown) {
      const refused = problem(thrown);
      one.failures += 1;
      one.nextAtMs = performance.now() + pauseMs(one.failures, refused);
      if (isFinal(refused)) setRefusedBy(refused.slug);
    }
    one.isUnderWay = false;
  };

  const isUnused = turn.kind === "unused";
  useEffect(() => {
    if (!isUnused || isUsed) return undefined;
    const use = (event: Event): void => {
      if (event.isTrusted) setIsUsed(true);
    };
    for (const name of USES) document.addEventListener(name, use, { capture: true, passive: true });
    return () => {
      for (const name of USES) document.removeEventListener(name, use, { capture: true });
    };
  }, [isUnused, isUsed]);
  // A pause of the room puts the end off: whether the visit is over, the engine says.
  const isEnd = turn.kind === "visit" && turn.endsAtMs <= now;
  const mustAsk = (isUnused && isUsed) || (isEnd && !document.hidden);
  useEffect(() => {
    if (mustAsk) void ask();
  }, [mustAsk, now]);
  const isEnding = turn.kind === "visit" && turn.isEnding;
  useEffect(() => {
    if (isEnding) announce(t("turn.ending"));
  }, [isEnding]);
  return <Shown sale={sale} turn={turn} />;
}

/** A turn in words. */
function Shown({ sale, turn }: { readonly sale: Sale; readonly turn: TurnState }) {
  if (turn.kind === "none") return null;
  if (turn.kind === "over") {
    return (
      <div class="notice warn turn" role="status">
        <p>{t(`room.${turn.slug}`)}</p>
        <p><a class="button" href={href(`/s/${encodeURIComponent(sale.sale)}/room?again=1`)}>{t("to-room")}</a></p>
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
