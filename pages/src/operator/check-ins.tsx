/** How many tickets of a sale were scanned, and those that were scanned again. */
import { useState } from "preact/hooks";

import { problem, type OnsaleProblem } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { number, shortDateTime } from "../shared/format.ts";
import { useLoaded } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { Loading, Problem } from "../shared/layout.tsx";
import { routes, type CheckInBoard, type DoubleCheckIn } from "./api.ts";
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

function Counted({ sale, page, atMs }: { readonly sale: string; readonly page: CheckInBoard; readonly atMs: number }) {
  return (
    <div class={page.doubles > 0 ? "notice warn" : "card"}>
      <p>{tn("check-ins-admitted", page.admitted)} {page.doubles === 0 ? t("check-ins-no-conflicts") : tn("check-ins-conflicts", page.doubles)}</p>
      {(page.conflicts ?? []).length > 0 && <Conflicts sale={sale} page={page} />}
      <p class="hint"><Age atMs={atMs} /></p>
    </div>
  );
}

function Conflicts({ sale, page }: { readonly sale: string; readonly page: CheckInBoard }) {
  const [older, setOlder] = useState<{ readonly conflicts: readonly DoubleCheckIn[]; readonly next: string | null } | null>(null);
  const [failed, setFailed] = useState<OnsaleProblem | null>(null);
  const next = older === null ? (page.next ?? null) : older.next;
  const more = async () => {
    try {
      const following = await routes.checkIns(sale, next);
      setOlder({ conflicts: [...(older?.conflicts ?? []), ...(following.conflicts ?? [])], next: following.next ?? null });
      setFailed(null);
    } catch (thrown) {
      setFailed(problem(thrown));
    }
  };
  return (
    <>
      <ul class="records">
        {[...(page.conflicts ?? []), ...(older?.conflicts ?? [])].map((one) => (
          <li key={JSON.stringify([one.order, one.ticket, one.at, one.door])}>
            <a href={href(`/operator/desk?order=${one.order}`)}>{t("check-ins-ticket", { order: one.order, ticket: number(one.ticket) })}</a>{" "}
            {t("check-ins-twice", { first: one.first_door, firstTime: shortDateTime(one.first_at), again: one.door, againTime: shortDateTime(one.at) })}
          </li>
        ))}
      </ul>
      {failed !== null && <Problem problem={failed} />}
      {next !== null && <button type="button" onClick={() => void more()}>{t("check-ins-more")}</button>}
    </>
  );
}
