/** What operators begin with: the sales, what is stuck, and what was done. */
import { useState } from "preact/hooks";

import { everyone, problem, reply, type OnsaleProblem, type Schemas } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { duration, number, shortDateTime } from "../shared/format.ts";
import { useLoaded, useNow } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { Loading, Problem } from "../shared/layout.tsx";
import { Accounts } from "./accounts.tsx";
import { may, routes, type Action, type Stuck as StuckReply } from "./api.ts";
import { Debts } from "./debts.tsx";
import { Disputes } from "./disputes.tsx";
import { Age, Rights } from "./parts.tsx";
import { UnmatchedPayments } from "./unmatched.tsx";
import { Webhooks } from "./webhooks.tsx";
import { phaseLook, t, tn } from "./words.ts";

/** Milliseconds between requests for what is stuck and what was done. */
const POLL_MS = 15_000;

/** The first page of operators. */
export function Home() {
  return (
    <>
      <Rights />
      <div class="row links">
        {may("operate") && <a class="button" href={href("/operator?publish")}>{t("publish-link")}</a>}
        <a class="button" href={href("/operator/desk")}>{t("desk-link")}</a>
        {may("scan") && <a class="button" href={href("/scan")}>{t("check-ins")}</a>}
      </div>
      <Sales />
      <Stuck />
      <Disputes />
      <UnmatchedPayments />
      <Debts />
      <Webhooks />
      <Accounts sale={null} />
      <Actions sale={null} />
    </>
  );
}

const salesPage = (cursor: string | null) =>
  reply(everyone.GET("/sales", { params: { query: cursor === null ? { limit: 200 } : { limit: 200, cursor } } }));

function Sales() {
  const [more, setMore] = useState<{ sales: readonly Schemas["SaleSummary"][]; next: string | null } | null>(null);
  const [failed, setFailed] = useState<OnsaleProblem | null>(null);
  const [filter, setFilter] = useState("");
  const { data, failure, reload } = useLoaded(() => salesPage(null), POLL_MS, []);
  if (data === null) {
    return <section><h2>{t("sales")}</h2>{failure === null ? <Loading /> : <Problem problem={failure} retry={() => void reload()} />}</section>;
  }
  const next = more === null ? (data.next ?? null) : more.next;
  const showMore = async () => {
    try {
      const page = await salesPage(next);
      setMore({ sales: [...(more?.sales ?? []), ...page.sales], next: page.next ?? null });
      setFailed(null);
    } catch (thrown) {
      setFailed(problem(thrown));
    }
  };
  const all = [...data.sales, ...(more?.sales ?? [])];
  const wanted = filter.trim().toLowerCase();
  const found = all.filter(({ sale, title }) => `${sale} ${title}`.toLowerCase().includes(wanted));
  return (
    <section aria-labelledby="sales">
      <h2 id="sales">{t("sales")}</h2>
      {failure !== null && <Problem problem={failure} />}
      {all.length > 5 && (
        <div class="field"><label for="filter">{t("sales-filter")}</label>
          <input id="filter" type="search" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} /></div>
      )}
      {all.length === 0 ? <p>{t("sales-none")}</p> : found.length === 0 ? <p role="status">{t("sales-none-found")}</p> : <SaleTable sales={found} />}
      {failed !== null && <Problem problem={failed} />}
      {next !== null && <button type="button" onClick={() => void showMore()}>{t("sales-more")}</button>}
    </section>
  );
}

function SaleTable({ sales }: { readonly sales: readonly Schemas["SaleSummary"][] }) {
  return (
    <div class="card flush">
      <ul class="sale-list">
        {sales.map(({ sale, title, state, opens_at, closes_at }) => (
          <li key={sale}>
            <a href={href(`/operator?sale=${encodeURIComponent(sale)}`)}>{title}</a>
            <span class={phaseLook(state)}>{t(`phase.${state}`)}</span>
            <span class="hint">{sale} · {shortDateTime(opens_at)} – {shortDateTime(closes_at)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Something and when it was known. */
const dated = async <T,>(load: () => Promise<T>) => {
  const value = await load();
  return { value, atMs: clock.nowMs() };
};

function Stuck() {
  const { data, failure, reload } = useLoaded(() => dated(routes.stuck), POLL_MS, []);
  return (
    <section aria-labelledby="stuck">
      <h2 id="stuck">{t("stuck")}</h2>
      {data === null && failure === null && <Loading />}
      {failure !== null && <Problem problem={failure} retry={() => void reload()} />}
      {data !== null && <StuckNow stuck={data.value} atMs={data.atMs} />}
    </section>
  );
}

function StuckNow({ stuck, atMs }: { readonly stuck: StuckReply; readonly atMs: number }) {
  const now = useNow(10_000);
  const letters = Object.entries(stuck.dead_letters).filter(([, count]) => count > 0);
  const isQuiet = stuck.overdue === 0 && letters.length === 0;
  return (
    <div class={isQuiet ? "good" : "notice warn"}>
      {isQuiet && <p>{t("stuck-nothing")}</p>}
      {stuck.overdue > 0 && (
        <p>{tn("stuck-overdue", stuck.overdue)} {stuck.oldest_due_at !== undefined && t("stuck-oldest", { age: duration(now - Date.parse(stuck.oldest_due_at)) })}</p>
      )}
      {letters.map(([queue, count]) => <p key={queue}>{t("stuck-letters", { count: number(count), queue })}</p>)}
      {!isQuiet && <p>{t("stuck-what")}</p>}
      <p class="hint"><Age atMs={atMs} /></p>
    </div>
  );
}

const actionKey = ({ at, who, action, sale, order }: Action) => JSON.stringify([at, who, action, sale, order]);

/** What operators did, the newest first; of one sale, or of all. */
export function Actions({ sale }: { readonly sale: string | null }) {
  const [older, setOlder] = useState<{ actions: readonly Action[]; next: string | null } | null>(null);
  const [failed, setFailed] = useState<OnsaleProblem | null>(null);
  const { data, failure, reload } = useLoaded(() => dated(() => routes.actions(null)), POLL_MS, []);
  const next = older === null ? (data?.value.next ?? null) : older.next;
  const more = async () => {
    try {
      const page = await routes.actions(next);
      setOlder({ actions: [...(older?.actions ?? []), ...page.actions], next: page.next ?? null });
      setFailed(null);
    } catch (thrown) {
      setFailed(problem(thrown));
    }
  };
  const newest = data?.value.actions ?? [];
  // A page of older ones may begin with what has moved down from the newest since.
  const shown = new Set(newest.map(actionKey));
  const actions = [...newest, ...(older?.actions ?? []).filter((action) => !shown.has(actionKey(action)))].filter((action) => sale === null || action.sale === sale);
  return (
    <section aria-labelledby="actions">
      <h2 id="actions">{t("actions")}</h2>
      {data === null && failure === null && <Loading />}
      {failure !== null && <Problem problem={failure} retry={() => void reload()} />}
      {data !== null && actions.length === 0 && next === null && <p class="hint">{t("actions-none")}</p>}
      {actions.length > 0 && <ActionList actions={actions} />}
      {data !== null && <p class="hint"><Age atMs={data.atMs} /></p>}
      {failed !== null && <Problem problem={failed} />}
      {next !== null && <button type="button" onClick={() => void more()}>{t("actions-more")}</button>}
    </section>
  );
}

function ActionList({ actions }: { readonly actions: readonly Action[] }) {
  return (
    <div class="card flush">
      <ul class="action-list">
        {actions.map((action) => (
          <li key={actionKey(action)}>
            <span><strong>{action.who}</strong>{action.way === "iam" && <> (IAM)</>} <Deed {...action} />{action.detail !== undefined && action.detail !== "" && <>: {action.detail}</>} <Outcome {...action} /></span>
            <span class="hint">{shortDateTime(action.at)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** What came of an action, unless it was simply done. */
function Outcome({ outcome }: Action) {
  if (outcome === "done") {
    return null;
  }
  return <span class="warning">({outcome === undefined ? t("outcome-unknown") : t("outcome-refused", { problem: outcome })})</span>;
}

function Deed({ action, sale, order }: Action) {
  const subject = order !== undefined ? t("subject.order", { order }) : (sale ?? "");
  const text = deedText(action.replace(/^(order|sale|room)[-_.]/, "").replaceAll("-", "_"), subject) ?? `${action} ${subject}`;
  // The order of an unmatched payment is not at the desk.
  const at = action === "unmatched" ? null : order !== undefined ? `/operator/desk?order=${order}` : sale !== undefined ? `/operator?sale=${encodeURIComponent(sale)}` : null;
  return at === null ? <>{text}</> : <a href={href(at)}>{text}</a>;
}

function deedText(action: string, subject: string): string | null {
  switch (action) {
    case "publish": case "pause": case "resume": case "close": case "rate": case "notice": case "sold_out": case "refund":
    case "cancel": case "check_in": case "command_room": case "reissue": case "unmatched":
      return t(`action.${action}`, { subject });
    default: return null;
  }
}
