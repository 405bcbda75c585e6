/** How to pay: the choice of a provider, leaving for its page, or its code. */
import { useEffect, useRef, useState } from "preact/hooks";

import { buyer, problem, reply, type OnsaleProblem, type Schemas } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { config } from "../shared/config.ts";
import { clockTime, countdown, duration, money } from "../shared/format.ts";
import { useNow, useTold } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { Loading, Problem } from "../shared/layout.tsx";
import { announce } from "../shared/live.ts";
import { getJson, setJson, tabStore } from "../shared/storage.ts";
import { Qr } from "../tickets/qr.tsx";
import { mayBeRepeated, type Order } from "../order/words.ts";
import { isPhone, savePicture } from "./picture.ts";
import { providerAddress, waysOf, type Way } from "./paying.ts";
import { choiceName, paymentText, words } from "./words.ts";

const { t } = words;
type Started = Schemas["StartedReply"];

/** How often a start is sent in vain before its person is asked. */
const MOST_ATTEMPTS = 40;

type Going =
  | { readonly kind: "choosing" }
  | { readonly kind: "starting" }
  | { readonly kind: "again"; readonly atMs: number }
  // The provider has no free start now: the order has its place, in which this page starts the payment.
  | { readonly kind: "place"; readonly atMs: number }
  | { readonly kind: "code"; readonly way: Way; readonly code: string }
  | { readonly kind: "refused"; readonly problem: OnsaleProblem };

interface PayProps {
  readonly order: Order;
  /** Called when a payment was started, before the page is left. */
  readonly onStarted: (way: Way) => void;
  /** Called when the order may have changed. */
  readonly onStale: () => void;
}

/** The way by which a payment of this order waits for its place in this tab, so that the page goes on when it is loaded again. */
const waitingKey = (order: string): string => `onsale.place.${order}`;

/** Starts a payment; the same request again is the same payment, so it is repeated until it is answered. */
async function started(order: string, way: Way, isOver: () => boolean, onWait: (kind: "again" | "place", atMs: number) => void): Promise<Started | null> {
  // The provider sends people back to this very page, which asks for the order and believes nothing of its own address.
  const body = { provider: way.provider, method: way.method, ...(way.method === "page" ? { return_url: location.origin + href(location.pathname) } : {}) };
  for (let attempt = 1; !isOver();) {
    try {
      return await reply(buyer.POST("/orders/{order}/payments", { params: { path: { order } }, body: body as Schemas["PaymentBody"] }));
    } catch (thrown) {
      const failure = problem(thrown);
      if (isOver()) return null;
      // Its seconds count from the answer, and are rounded up: who comes then is in its place, whatever the clocks say.
      const placeMs = failure.slug === "payment-waits" ? (failure.retryAfterSeconds ?? 1) * 1000 : null;
      if (placeMs !== null) {
        onWait("place", clock.nowMs() + placeMs);
        await new Promise((resolve) => setTimeout(resolve, placeMs));
        continue;
      }
      attempt += 1;
      const mayGoOn = failure.slug === "payment-being-closed" || (mayBeRepeated(failure) && failure.slug !== "payment-not-started");
      if (!mayGoOn || attempt > MOST_ATTEMPTS) throw failure;
      const ms = Math.max((failure.retryAfterSeconds ?? 0) * 1000, Math.min(8_000, 250 * 2 ** attempt));
      onWait("again", clock.nowMs() + ms);
      await new Promise((resolve) => setTimeout(resolve, ms));
    }
  }
  return null;
}

/** The choice and what comes of it. */
export function Pay({ order, onStarted, onStale }: PayProps) {
  const [ways, setWays] = useState<readonly Way[] | null>(null);
  const [failed, setFailed] = useState<OnsaleProblem | null>(null);
  const [chosen, setChosen] = useState(0);
  // Ways that the engine does not offer for this order, such as for its currency.
  const [closed, setClosed] = useState<ReadonlySet<number>>(new Set());
  const [going, setGoing] = useState<Going>({ kind: "choosing" });
  const isOver = useRef(false);
  // Who chooses another way leaves the start that waits.
  const run = useRef(0);
  const load = (): void => {
    setFailed(null);
    config().then((settings) => setWays(waysOf(settings, order.currency)), (thrown: unknown) => setFailed(problem(thrown)));
  };
  useEffect(() => {
    load();
    // Whoever comes back by the back button chooses again.
    const shown = (event: PageTransitionEvent): void => {
      if (event.persisted) setGoing({ kind: "choosing" });
    };
    addEventListener("pageshow", shown);
    return () => {
      isOver.current = true;
      removeEventListener("pageshow", shown);
    };
  }, []);
  // A page that was loaded again while its payment waited for its place goes on waiting.
  useEffect(() => {
    const kept = getJson<Partial<Way>>(tabStore, waitingKey(order.order));
    const at = ways?.findIndex(({ provider, method }) => provider === kept?.provider && method === kept?.method) ?? -1;
    const before = ways?.[at];
    if (before === undefined || going.kind !== "choosing" || !(order.places ?? []).some(({ provider }) => provider === before.provider)) return;
    setChosen(at);
    void pay(before);
  }, [ways]);
  if (failed !== null) return <Problem problem={failed} retry={load} />;
  if (ways === null) return <Loading />;
  const way = ways[chosen];
  if (way === undefined) return <p class="problem">{t("no-providers")}</p>;
  const amount = money(order.amount_minor, order.currency);

  async function pay(way: Way): Promise<void> {
    run.current += 1;
    const own = run.current;
    let isPlaced = false;
    setGoing({ kind: "starting" });
    const onWait = (kind: "again" | "place", atMs: number): void => {
      setGoing({ kind, atMs });
      if (kind !== "place" || isPlaced) return;
      isPlaced = true;
      setJson(tabStore, waitingKey(order.order), way);
      announce(t("place-announced", { time: duration(atMs - clock.nowMs()) }));
      // The order may have more time now.
      onStale();
    };
    try {
      const payment = await started(order.order, way, () => isOver.current || run.current !== own, onWait);
      if (payment === null) return;
      tabStore.remove(waitingKey(order.order));
      const address = providerAddress(payment.url);
      if (way.method === "code" && typeof payment.code === "string") {
        onStarted(way);
        announce(t("scan"));
        setGoing({ kind: "code", way, code: payment.code });
      } else if (address !== null) {
        onStarted(way);
        location.assign(address);
      } else {
        throw new Error("no address");
      }
    } catch (thrown) {
      const failure = problem(thrown);
      tabStore.remove(waitingKey(order.order));
      setGoing({ kind: "refused", problem: failure });
      if (failure.slug === "payment-not-offered" || failure.slug === "payment-not-started") {
        const left = new Set([...closed, chosen]);
        setClosed(left);
        setChosen(Math.max(0, (ways ?? []).findIndex((_, at) => !left.has(at))));
      }
      if (["order-resolved", "payment-over", "not-found"].includes(failure.slug)) onStale();
    }
  }
  const choose = (): void => {
    run.current += 1;
    tabStore.remove(waitingKey(order.order));
    setGoing({ kind: "choosing" });
  };
  if (going.kind === "code") {
    return <Code way={going.way} code={going.code} amount={amount} onOther={() => setGoing({ kind: "choosing" })} />;
  }
  if (going.kind === "place") return <Placed atMs={going.atMs} name={choiceName(way.provider)} until={order.pay_by} onOther={choose} />;
  const isBusy = going.kind === "starting" || going.kind === "again";
  return (
    <form onSubmit={(event) => { event.preventDefault(); void pay(way); }}>
      <Ways ways={ways} chosen={chosen} closed={closed} isBusy={isBusy} onChosen={setChosen} />
      {going.kind === "refused" && <p class="problem" role="alert">{paymentText(going.problem)}</p>}
      <button type="submit" class="primary pay" disabled={isBusy || closed.has(chosen)}>{t("pay", { amount })}</button>
      {isBusy && <Busy going={going} />}
    </form>
  );
}

interface WaysProps {
  readonly ways: readonly Way[];
  readonly chosen: number;
  readonly closed: ReadonlySet<number>;
  readonly isBusy: boolean;
  readonly onChosen: (at: number) => void;
}

/** The ways to pay, of which one is chosen. */
function Ways({ ways, chosen, closed, isBusy, onChosen }: WaysProps) {
  return (
    <fieldset class="ways-to-pay" disabled={isBusy}>
      <legend>{t("how-to-pay")}</legend>
      {ways.map(({ provider, method }, at) => (
        <label class={`way-to-pay${closed.has(at) ? " out" : ""}`} key={`${provider}/${method}`}>
          <input type="radio" name="way" disabled={closed.has(at)} checked={at === chosen && !closed.has(at)} onChange={() => onChosen(at)} />
          <span><strong>{choiceName(provider)}</strong><span class="hint">{t(closed.has(at) ? "method.closed" : `method.${method}`)}</span></span>
        </label>
      ))}
    </fieldset>
  );
}

function Busy({ going }: { readonly going: Going }) {
  const now = useNow(500);
  const text = going.kind === "again" ? t("starting-again", { seconds: Math.max(0, Math.ceil((going.atMs - now) / 1000)) }) : t("starting");
  useTold(going.kind, text);
  return <p class="busy">{text}</p>;
}

/** Counts down to the place in which this page starts the payment by itself. */
function Placed({ atMs, name, until, onOther }: { readonly atMs: number; readonly name: string; readonly until: string; readonly onOther: () => void }) {
  const now = useNow(500);
  return (
    <section class="placed" aria-labelledby="place-title">
      <h2 id="place-title">{t("place-title")}</h2>
      <p class="count" role="timer">{countdown(atMs - now)}</p>
      <p>{t("place-hint", { provider: name, until: clockTime(until) })}</p>
      <button type="button" onClick={onOther}>{t("other-way")}</button>
    </section>
  );
}

/** What a phone can do that shows a code and cannot scan it. */
function OnThisPhone({ way, code }: { readonly way: Way; readonly code: string }) {
  const [outcome, setOutcome] = useState<"saved" | "not-saved" | null>(null);
  const app = way.provider === "wechat" ? t("app.wechat") : choiceName(way.provider);
  const save = async (): Promise<void> => {
    setOutcome(null);
    await savePicture(code, `${way.provider}.png`).then(() => setOutcome("saved"), () => setOutcome("not-saved"));
  };
  return (
    <div class="notice on-phone">
      <p>{t("scan-phone", { app })}</p>
      <p><button type="button" onClick={() => void save()}>{t("save-picture")}</button></p>
      <p role="status">{outcome !== null && t(`picture.${outcome}`, { app })}</p>
    </div>
  );
}

/** A code to be scanned. The order is asked for all the while. */
function Code({ way, code, amount, onOther }: { readonly way: Way; readonly code: string; readonly amount: string; readonly onOther: () => void }) {
  return (
    <section class="scan" aria-labelledby="scan-title">
      <h2 id="scan-title">{t("scan")}</h2>
      <Qr code={code} label={t("code-alt")} />
      <p>{t("scan-hint", { provider: choiceName(way.provider), amount })}</p>
      {isPhone() && <OnThisPhone way={way} code={code} />}
      <button type="button" onClick={onOther}>{t("other-way")}</button>
    </section>
  );
}
