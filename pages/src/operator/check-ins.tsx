/** Who was let in to a sale, and the tickets that two doors let in. */
import { useState } from "preact/hooks";

import { problem, type OnsaleProblem } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { number, shortDateTime } from "../shared/format.ts";
import { useLoaded } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { Loading, Problem } from "../shared/layout.tsx";
import { routes, type CheckIns as CheckInsReply, type Conflict } from "./api.ts";
import { Age } from "./parts.tsx";
import { t, tn } from "./words.ts";

/** Milliseconds between requests. */
const POLL_MS = 10_000;

/** The check-ins of a sale. */
export function CheckIns({ sale }: { readonly sale: string }) {
  const { data, failure, reload } = useLoaded(async () => ({ page: await routes.checkIns(sale, null), atMs: clock.nowMs() }), POLL_MS, [sale]);
  return (
    <section aria-labelledby="check-ins">
      <h2 id="check-ins">{t("check-ins")}</h2>
      {data === null && failure === null && <Loading />}
      {failure !== null && <Problem problem={failure} retry={() => void reload()} />}
      {data !== null && <Counted sale={sale} page={data.page} atMs={data.atMs} />}
      <p><a href={href(`/scan?sale=${encodeURIComponent(sale)}`)}>{t("check-ins-scan")}</a></p>
    </section>
  );
}

function Counted({ sale, page, atMs }: { readonly sale: string; readonly page: CheckInsReply; readonly atMs: number }) {
  return (
    <div class={page.conflicts > 0 ? "notice warn" : "card"}>
      <p>{tn("check-ins-admitted", page.admitted)} {page.conflicts === 0 ? t("check-ins-no-conflicts") : tn("check-ins-conflicts", page.conflicts)}</p>
      {page.tickets.length > 0 && <Conflicts sale={sale} page={page} />}
      <p class="hint"><Age atMs={atMs} /></p>
    </div>
  );
}

function Conflicts({ sale, page }: { readonly sale: string; readonly page: CheckInsReply }) {
  const [older, setOlder] = useState<{ readonly tickets: readonly Conflict[]; readonly next: string | null } | null>(null);
  const [failed, setFailed] = useState<OnsaleProblem | null>(null);
  const next = older === null ? (page.next ?? null) : older.next;
  const more = async () => {
    try {
      const following = await routes.checkIns(sale, next);
      setOlder({ tickets: [...(older?.tickets ?? []), ...following.tickets], next: following.next ?? null });
      setFailed(null);
    } catch (thrown) {
      setFailed(problem(thrown));
    }
  };
  return (
    <>
      <ul class="records">
        {[...page.tickets, ...(older?.tickets ?? [])].map((one) => (
          <li key={JSON.stringify([one.order, one.ticket, one.again])}>
            <a href={href(`/operator/desk?order=${one.order}`)}>{t("check-ins-ticket", { order: one.order, ticket: number(one.ticket) })}</a>{" "}
            {t("check-ins-twice", { first: one.first.door, firstTime: shortDateTime(one.first.at), again: one.again.door, againTime: shortDateTime(one.again.at) })}
          </li>
        ))}
      </ul>
      {failed !== null && <Problem problem={failed} />}
      {next !== null && <button type="button" onClick={() => void more()}>{t("check-ins-more")}</button>}
    </>
  );
}
