/** A sale live: what its board says, asked for again and again, and its controls. */
import { useRef, useState } from "preact/hooks";

import { saleReply, useNames } from "../order/sale.ts";
import { money, number } from "../shared/format.ts";
import { useLoaded } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { Loading, Problem, useTab } from "../shared/layout.tsx";
import { everyone, reply, type Schemas } from "../shared/api.ts";
import { routes, type Board, type BoardTier } from "./api.ts";
import { Accounts } from "./accounts.tsx";
import { CheckIns } from "./check-ins.tsx";
import { Controls } from "./controls.tsx";
import { aMinute, heldOf, kept, lineOf, sampleOf, type Figure, type Sample } from "./history.ts";
import { Lately } from "./figures.tsx";
import { Actions } from "./home.tsx";
import { Age, Stale } from "./parts.tsx";
import { RoomView } from "./room.tsx";
import { StandingControls } from "./standing.tsx";
import { TakingsOf } from "./takings.tsx";
import { phaseLook, t } from "./words.ts";

/** Milliseconds between boards. */
const POLL_MS = 2_000;

/** The board of a sale. A room that nobody has asked for yet is not on it: whoever asks for its document has it shown. */
async function boardOf(sale: string): Promise<Board> {
  const board = await routes.board(sale);
  if (board.room !== null) {
    return board;
  }
  try {
    const hasRoom = (await saleReply(sale)).file.room != null;
    // The client's types of replies know no tuples.
    return hasRoom ? { ...board, room: (await reply(everyone.GET("/sales/{sale}/room", { params: { path: { sale } } }))) as Schemas["Document"] } : board;
  } catch {
    return board;
  }
}

/** A sale live. */
export function Live({ sale }: { readonly sale: string }) {
  const names = useNames(sale);
  const samples = useRef<readonly Sample[]>([]);
  const [commanded, setCommanded] = useState<Schemas["Document"] | null>(null);
  const { data: board, failure, reload } = useLoaded(async () => {
    const next = await boardOf(sale);
    samples.current = kept(samples.current, sampleOf(next, names.isTrain !== false));
    return next;
  }, POLL_MS, [sale, names.isTrain]);
  useTab(`${names.title} · ${t("live")}`);
  return (
    <>
      <p class="back"><a href={href("/operator")}>← {t("all-sales")}</a></p>
      <div class="head"><h1>{names.title}</h1>{board !== null && <span class={phaseLook(board.state)}>{t(`phase.${board.state}`)}</span>}</div>
      {board === null && failure === null && <Loading />}
      {failure !== null && <Problem problem={failure} retry={() => void reload()} />}
      {board !== null && <BoardView board={board} samples={samples.current} room={newer(board.room, commanded)} isTrain={names.isTrain !== false} onRoom={setCommanded} />}
      <CheckIns sale={sale} />
      <TakingsOf sale={sale} />
      <Accounts sale={sale} />
      <Lately sale={sale} />
      <Actions sale={sale} />
    </>
  );
}

/** Of two room documents the newer one: that of a command may be ahead of the board's. */
function newer(one: Schemas["Document"] | null, other: Schemas["Document"] | null): Schemas["Document"] | null {
  return one === null || (other !== null && (other.record > one.record || Date.parse(other.as_of) > Date.parse(one.as_of))) ? other : one;
}

interface BoardProps {
  readonly board: Board;
  readonly samples: readonly Sample[];
  readonly room: Schemas["Document"] | null;
  readonly isTrain: boolean;
  readonly onRoom: (room: Schemas["Document"]) => void;
}

function BoardView({ board, samples, room, isTrain, onRoom }: BoardProps) {
  const asOfMs = Date.parse(board.as_of);
  return (
    <>
      <div class="row bar">
        <p class="hint"><Age atMs={asOfMs} /></p>
        <a href={href(`/s/${encodeURIComponent(board.sale)}`)}>{t("to-page")}</a>
        <a href={href(`/operator/desk?sale=${encodeURIComponent(board.sale)}`)}>{t("to-desk")}</a>
      </div>
      <Stale atMs={asOfMs} />
      <section aria-label={t("live")}>
        <Figures board={board} samples={samples} hasRoom={room !== null} isTrain={isTrain} />
      </section>
      <section aria-labelledby="room">
        <h2 id="room">{t(room === null ? "standing" : "room")}</h2>
        {room === null ? <><p class="hint">{t("room-none")}</p><StandingControls sale={board.sale} /></> : <div class="pair"><RoomView room={room} /><Controls sale={board.sale} room={room} onRoom={onRoom} /></div>}
      </section>
      <section aria-labelledby="tiers"><h2 id="tiers">{t("tiers")}</h2><Tiers tiers={board.tiers} currency={board.currency} isTrain={isTrain} /></section>
    </>
  );
}

interface FiguresProps {
  readonly board: Board;
  readonly samples: readonly Sample[];
  readonly hasRoom: boolean;
  readonly isTrain: boolean;
}

/** Which figures are shown: those that the sale can have. */
function figuresOf({ hasRoom, isTrain }: FiguresProps): readonly Figure[] {
  const ofRoom: readonly Figure[] = hasRoom ? ["waiting", "served"] : [];
  return [...ofRoom, "sold", ...(isTrain ? [] : ["held"] as const), "available", "revenue"];
}

function Figures(props: FiguresProps) {
  const { board, samples, isTrain } = props;
  const figures = figuresOf(props);
  const last = samples.at(-1)?.figures;
  return (
    <dl class="figures">
      {figures.map((figure) => {
        const value = last?.[figure] ?? null;
        const write = (amount: number) => (figure === "revenue" ? money(amount, board.currency) : number(amount));
        const change = aMinute(samples, figure);
        const line = lineOf(samples, figure);
        return (
          <div key={figure} class={`figure ${figure}`}>
            <dt>{figure === "available" && isTrain ? t("figure-whole") : t(`figure.${figure}`)}</dt>
            <dd>
              <span class="value">{value === null ? t("figure-unknown") : write(value)}</span>
              <svg class="line" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true"><path d={line} /></svg>
              <span class="hint">{change === null ? "\u00a0" : t("a-minute", { change: `${change > 0 ? "+" : ""}${write(change)}` })}</span>
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

function Tiers({ tiers, currency, isTrain }: { readonly tiers: readonly BoardTier[]; readonly currency: string; readonly isTrain: boolean }) {
  const write = (value: number | null | undefined) => (value === null || value === undefined ? "–" : number(value));
  return (
    <div class="card">
      <div class="scroll" tabIndex={0} role="group" aria-labelledby="tiers">
        <table class="tiers">
          <thead><tr>
            <th scope="col">{t("tier")}</th>
            <th scope="col" class="number">{t("tier-seats")}</th><th scope="col" class="number">{t("tier-sold")}</th>
            {!isTrain && <th scope="col" class="number">{t("tier-held")}</th>}<th scope="col" class="number">{isTrain ? t("figure-whole") : t("tier-left")}</th>
            <th scope="col" class="number">{t("tier-money")}</th>{!isTrain && <th scope="col" class="share">{t("tier-share")}</th>}
          </tr></thead>
          <tbody>
            {tiers.map((tier) => (
              <tr key={tier.tier}>
                <th scope="row">{tier.name}</th>
                <td class="number">{write(tier.seats)}</td><td class="number">{write(tier.sold)}</td>
                {!isTrain && <td class="number">{write(heldOf(tier, isTrain))}</td>}<td class="number">{write(tier.available)}</td>
                <td class="number">{tier.revenue_minor === undefined ? "–" : money(tier.revenue_minor, currency)}</td>
                {!isTrain && <td class="share"><Share tier={tier} /></td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {!isTrain && <ul class="legend" aria-hidden="true"><li class="served">{t("tier-sold")}</li><li class="lasts">{t("tier-held")}</li><li>{t("tier-left")}</li></ul>}
    </div>
  );
}

/** A bar of a tier: what is sold, held and left. The numbers stand beside it. */
function Share({ tier }: { readonly tier: BoardTier }) {
  const of = (value: number | null | undefined) => (value === null || value === undefined || tier.seats === 0 ? 0 : (value / tier.seats) * 100);
  const [sold, held] = [of(tier.sold), of(heldOf(tier, false))];
  return (
    <svg class="share-bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      <rect class="left" width="100" height="10" /><rect class="sold" width={sold} height="10" /><rect class="held" x={sold} width={held} height="10" />
    </svg>
  );
}
