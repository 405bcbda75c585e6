/** `/my/orders`: a buyer's orders, what was paid and refunded, cancelling and giving back. */
import { useEffect, useRef, useState } from "preact/hooks";

import "./orders.css";
import { merged } from "../order/give-back.ts";
import { HeldOrders } from "../order/held-orders.tsx";
import { newestOrders, onOrdersChanged, PAGE } from "../order/newest.ts";
import { namesReady, useNames } from "../order/sale.ts";
import { words, type Order } from "../order/words.ts";
import { buyer, problem, reply, type OnsaleProblem, type Schemas } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { clockTime } from "../shared/format.ts";
import { useLoaded, useReturn, useSession } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { Loading, Page, Problem, SignInButton, start } from "../shared/layout.tsx";
import { announce } from "../shared/live.ts";
import { OrderCard } from "./card.tsx";
import { Points } from "./points.tsx";
import { Wallets } from "./wallets.tsx";
import { t, tn } from "./words.ts";

/** Milliseconds between requests while something of the newest orders is about to change. */
const POLL_MS = 5_000;

async function pageOf(before?: string): Promise<Schemas["PageReply"]> {
  const page = await (before === undefined ? newestOrders() : reply(buyer.GET("/orders", { params: { query: { limit: PAGE, before } } })));
  await namesReady([...page.orders, ...page.allowances].map(({ sale }) => sale));
  return page;
}

const isMoving = ({ state, refunds }: Order) => state === "pending" || state === "refund_due" || (refunds !== undefined && refunds.back < refunds.made);

function Orders() {
  const session = useSession("buyers");
  const hadSession = useRef(false);
  hadSession.current ||= session !== null;
  return (
    <Page title={t("title")} banner={<HeldOrders />}>
      {session === null
        ? <div class="card"><p>{hadSession.current ? words.t("sign-in-ended") : t("sign-in-first")}</p><SignInButton role="buyers" returnTo={location.pathname + location.search + location.hash} /></div>
        : <List key={session.name ?? ""} />}
    </Page>
  );
}

/** What is known of a buyer's orders: the newest page, asked for again while it moves, and older ones as they are asked for. */
function useOrders() {
  const [orders, setOrders] = useState<readonly Order[] | null>(null);
  const [allowances, setAllowances] = useState<ReadonlyMap<string, Schemas["AllowanceReply"]>>(new Map());
  const [next, setNext] = useState<string | null>(null);
  const knownAtMs = useRef(0);
  const hasOlder = useRef(false);
  const take = (page: Schemas["PageReply"]) => {
    setOrders((before) => merged(before ?? [], page.orders));
    setAllowances((before) => new Map([...before, ...page.allowances.map((one) => [one.sale, one] as const)]));
  };
  const moves = orders?.slice(0, PAGE).some(isMoving) ?? false;
  const newest = useLoaded(async () => {
    const page = await pageOf();
    knownAtMs.current = clock.nowMs();
    take(page);
    if (!hasOlder.current) {
      setNext(page.next ?? null);
    }
    return page;
  }, moves ? POLL_MS : null, [moves]);
  const older = async () => {
    if (next !== null) {
      const page = await pageOf(next);
      hasOlder.current = true;
      take(page);
      setNext(page.next ?? null);
    }
  };
  const replace = (order: Order) => setOrders((before) => merged(before ?? [], [order]));
  return { orders, allowances, next, older, replace, failure: newest.failure, reload: newest.reload, knownAtMs: knownAtMs.current };
}

function List() {
  const { orders, allowances, next, older, replace, failure, reload, knownAtMs } = useOrders();
  useReturn(() => void reload());
  useEffect(() => onOrdersChanged(() => document.hidden || void reload()), [reload]);
  if (orders === null) {
    return failure === null ? <Loading /> : <Problem problem={failure} retry={() => void reload()} />;
  }
  return (
    <>
      {failure !== null && <div class="notice warn" role="status"><p>{t("old", { time: clockTime(knownAtMs) })}</p></div>}
      {orders.length === 0
        ? <div class="card"><p>{t("none")}</p><a class="button" href={href("/")}>{t("to-sales")}</a></div>
        : orders.map((order) => <OrderCard key={order.order} order={order} replace={replace} />)}
      {next !== null && <More older={older} shown={orders.length} />}
      {allowances.size > 0 && <Allowances allowances={[...allowances.values()]} />}
      <Wallets />
      <Points />
    </>
  );
}

function More({ older, shown }: { readonly older: () => Promise<void>; readonly shown: number }) {
  const [isLoading, setLoading] = useState(false);
  const [failure, setFailure] = useState<OnsaleProblem | null>(null);
  const wasLoading = useRef(false);
  useEffect(() => {
    if (wasLoading.current && !isLoading && failure === null) {
      announce(tn("shown", shown));
    }
    wasLoading.current = isLoading;
  }, [isLoading]);
  const load = async () => {
    setLoading(true);
    try {
      await older();
      setFailure(null);
    } catch (thrown) {
      setFailure(problem(thrown));
    }
    setLoading(false);
  };
  return (
    <>
      {failure !== null && <Problem problem={failure} />}
      <p><button type="button" aria-disabled={isLoading} onClick={() => !isLoading && void load()}>{t("more")}</button></p>
    </>
  );
}

function Allowances({ allowances }: { readonly allowances: readonly Schemas["AllowanceReply"][] }) {
  return (
    <section aria-labelledby="allowances">
      <h2 id="allowances">{t("allowances")}</h2>
      <ul class="card allowances">{allowances.map((one) => <Allowance key={one.sale} {...one} />)}</ul>
    </section>
  );
}

/** A list, not a table: four columns leave none of them room enough on a phone. */
function Allowance({ sale, held, remaining, limit }: Schemas["AllowanceReply"]) {
  const names = useNames(sale);
  return (
    <li>
      <a href={href(`/s/${encodeURIComponent(sale)}`)}>{names.title}</a>
      <span>{tn("allowance", remaining, { held, limit })}</span>
    </li>
  );
}

void start(<Orders />, { needsSession: true });
