/** The banner of orders that are held: on every page of a buyer, with the clock of each, leading to its checkout. */
import "./held.css";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";

import type { Schemas } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { journeyText, shortWhenText } from "../shared/event.ts";
import { countdown } from "../shared/format.ts";
import { useNow, useReturn, useSession } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { shared } from "../shared/text.ts";
import { heldOrders, type Held } from "./held.ts";
import { newestOrders, onOrdersChanged } from "./newest.ts";
import { beforeLong, namesReady, useNames } from "./sale.ts";

const { t, tn } = shared;

type Orders = Schemas["PageReply"]["orders"];

/** Milliseconds that a page waits for what is held, at most: whoever comes to buy is not kept for an answer about other orders. */
const MOST_MS = 2_000;
/** Milliseconds for which an answer does for whatever is shown next of the page. */
const FRESH_MS = 5_000;

let last: { readonly token: string; readonly atMs: number; readonly orders: Promise<Orders> } | null = null;

/** The newest orders, with the names of those that are held: nothing is announced by its id, and nothing grows once it is announced. */
async function withNames(): Promise<Orders> {
  const { orders } = await newestOrders();
  await namesReady(heldOrders(orders, clock.nowMs()).map(({ sale }) => sale));
  return orders;
}

/** The same; what the page asked for a moment ago is not asked for again. */
function atFirst(token: string): Promise<Orders> {
  if (last === null || last.token !== token || performance.now() - last.atMs > FRESH_MS) {
    last = { token, atMs: performance.now(), orders: withNames() };
  }
  return last.orders;
}

/** True once the main part of the page was shown. */
let isShown = false;

/** Shows the main part once it is known what is held: a banner that came later would push away what is read, or pressed, already. */
function useWaiting(token: string): void {
  useLayoutEffect(() => {
    if (isShown) return;
    const { classList } = document.documentElement;
    classList.add("waits");
    void beforeLong(atFirst(token).catch(() => {}), MOST_MS).then(() => {
      isShown = true;
      classList.remove("waits");
    });
  }, []);
}

/** The banner; `except` is the order that the page itself is about. */
export function HeldOrders({ except }: { readonly except?: string }) {
  const session = useSession("buyers");
  if (session === null) {
    isShown = true;
    return null;
  }
  return <Asked key={session.token} token={session.token} {...(except === undefined ? {} : { except })} />;
}

/** Asks at first, when its person comes back, and when something is said to have changed: not again and again. */
function Asked({ token, except }: { readonly token: string; readonly except?: string }) {
  const [orders, setOrders] = useState<Orders>([]);
  useWaiting(token);
  const ask = () => {
    // Whoever does not look is not asked for: coming back asks.
    if (!document.hidden) withNames().then(setOrders, () => {});
  };
  useEffect(() => {
    let isOver = false;
    if (!document.hidden || !isShown) atFirst(token).then((found) => isOver || setOrders(found), () => {});
    const stop = onOrdersChanged(ask);
    return () => {
      isOver = true;
      stop();
    };
  }, []);
  useReturn(ask);
  const now = useNow();
  const held = heldOrders(orders, now, except);
  return held.length === 0 ? null : (
    <aside class="held" aria-label={t("held.label")}>
      <ul>{held.map((order) => <One key={order.order} held={order} now={now} />)}</ul>
    </aside>
  );
}

function One({ held, now }: { readonly held: Held; readonly now: number }) {
  const { title, timetable, event } = useNames(held.sale);
  const when = timetable === null ? shortWhenText(event?.starts_at, event?.time_zone) : journeyText(timetable, held.from ?? "", held.to ?? "", "short").departs;
  const leftMs = held.payByMs - now;
  return (
    <li class={leftMs < 60_000 ? "soon" : ""}>
      <p>{tn("held.text", held.tickets, { title: when === null ? title : t("held.title", { title, when }) })} <strong role="timer">{t("held.left", { left: countdown(leftMs) })}</strong></p>
      <a class="button" href={href(`/checkout/${held.order}`)}>{t("held.go")}</a>
    </li>
  );
}
