/** The banner of orders that are held: on every page of a buyer, with the clock of each, leading to its checkout. */
import "./held.css";
import { useEffect, useState } from "preact/hooks";

import type { Schemas } from "../shared/api.ts";
import { countdown } from "../shared/format.ts";
import { useNow, useReturn, useSession } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { shared } from "../shared/text.ts";
import { heldOrders, type Held } from "./held.ts";
import { newestOrders, onOrdersChanged } from "./newest.ts";
import { saleReply, type KnownSale } from "./sale.ts";
import { shortWhen } from "./when-where.tsx";

const { t, tn } = shared;

/** The banner; `except` is the order that the page itself is about. */
export function HeldOrders({ except }: { readonly except?: string }) {
  const session = useSession("buyers");
  return session === null ? null : <Asked key={session.token} {...(except === undefined ? {} : { except })} />;
}

/** Asks at first, when its person comes back, and when something is said to have changed: not again and again. */
function Asked({ except }: { readonly except?: string }) {
  const [orders, setOrders] = useState<Schemas["PageReply"]["orders"]>([]);
  const ask = () => {
    // Whoever does not look is not asked for: coming back asks.
    if (!document.hidden) newestOrders().then((page) => setOrders(page.orders), () => {});
  };
  useEffect(() => {
    ask();
    return onOrdersChanged(ask);
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
  const [sale, setSale] = useState<KnownSale | null>(null);
  useEffect(() => {
    saleReply(held.sale).then(setSale, () => setSale({ title: held.sale, file: { tiers: [] } }));
  }, [held.sale]);
  const when = sale === null ? null : shortWhen(sale, held);
  const leftMs = held.payByMs - now;
  return sale === null ? null : (
    <li class={leftMs < 60_000 ? "soon" : ""}>
      <p>{tn("held.text", held.tickets, { title: when === null ? sale.title : t("held.title", { title: sale.title, when }) })} <strong role="timer">{t("held.left", { left: countdown(leftMs) })}</strong></p>
      <a class="button" href={href(`/checkout/${held.order}`)}>{t("held.go")}</a>
    </li>
  );
}
