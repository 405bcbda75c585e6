/** Joins the waiting room: the button, what may be said with it, and what comes back. */
import { useEffect, useRef, useState } from "preact/hooks";

import { ChallengeForm, type Answer } from "../shared/challenge.tsx";
import { goTo } from "../shared/language.ts";
import { Problem } from "../shared/layout.tsx";
import { announce } from "../shared/live.ts";
import type { OnsaleProblem } from "../shared/api.ts";
import { join, type Outcome, type Wish } from "./join.ts";
import type { Sale } from "./next-step.ts";
import { t } from "./text.ts";

/** The words for a refusal of joining; null: the shared ones. */
function refusalText(problem: OnsaleProblem): string | undefined {
  switch (problem.slug) {
    case "joins-not-open": case "code-refused": case "group-differs": case "too-many-guesses": case "registration-over": case "room-full": case "sale-closed": case "refused-by-rule":
      return t(`refused.${problem.slug}`);
    default: return undefined;
  }
}

/** The form. `label` is what its button says. */
export function JoinForm({ sale, label }: { readonly sale: Sale; readonly label: string }) {
  const groups = sale.file.room?.groups ?? [{ group: "all" }];
  const [wish, setWish] = useState<Wish>({ group: groups[0]?.group ?? "all", code: "", moreTime: false });
  const [outcome, setOutcome] = useState<Outcome | "joining" | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => () => clearTimeout(timer.current), []);

  const attempt = async (answer: Answer | null) => {
    setOutcome("joining");
    const now = await join(sale, wish, answer);
    if (now.kind === "joined") {
      announce(t("joined"));
      goTo(`/s/${sale.sale}/room`);
    } else if (now.kind === "again") {
      timer.current = setTimeout(() => void attempt(answer), now.afterMs);
    }
    setOutcome(now);
  };
  if (outcome !== null && outcome !== "joining" && outcome.kind === "challenge") {
    return <ChallengeForm key={JSON.stringify(outcome.challenge)} challenge={outcome.challenge} failed={outcome.failed} onAnswer={(answer) => void attempt(answer)} />;
  }
  const isBusy = outcome === "joining" || (outcome !== null && outcome.kind !== "refused");
  return (
    <form onSubmit={(event) => { event.preventDefault(); void attempt(null); }}>
      <Wishes groups={groups} wish={wish} onChange={setWish} />
      <button type="submit" class="primary" disabled={isBusy}>{label}</button>
      {isBusy && <p role="status">{t("say.joining")} {outcome !== "joining" && outcome.kind === "again" && t("again-soon")}</p>}
      {outcome !== null && outcome !== "joining" && outcome.kind === "refused" && <Problem problem={outcome.problem} text={refusalText(outcome.problem)} />}
    </form>
  );
}

function Wishes({ groups, wish, onChange }: {
  readonly groups: readonly { readonly group: string; readonly codes?: boolean }[]; readonly wish: Wish; readonly onChange: (wish: Wish) => void;
}) {
  const hasCode = groups.find(({ group }) => group === wish.group)?.codes === true;
  return (
    <>
      {groups.length > 1 && (
        <div class="field">
          <label for="group">{t("group")}</label>
          <select id="group" value={wish.group} onChange={(event) => onChange({ ...wish, group: event.currentTarget.value })}>
            {groups.map(({ group }) => <option key={group} value={group}>{group}</option>)}
          </select>
        </div>
      )}
      {hasCode && (
        <div class="field">
          <label for="code">{t("code")}</label>
          <input id="code" required autocomplete="off" spellcheck={false} aria-describedby="code-hint" value={wish.code} onInput={(event) => onChange({ ...wish, code: event.currentTarget.value })} />
          <p class="hint" id="code-hint">{t("code.hint")}</p>
        </div>
      )}
      <p>
        <label>
          <input type="checkbox" checked={wish.moreTime} aria-describedby="more-time-hint" onChange={(event) => onChange({ ...wish, moreTime: event.currentTarget.checked })} />
          {t("more-time")}
        </label>
        <span class="hint" id="more-time-hint">{t("more-time.hint")}</span>
      </p>
    </>
  );
}
