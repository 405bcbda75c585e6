/** Payments of this deployment whose order is not there: an operator decides what becomes of each. */
import { useState } from "preact/hooks";

import { Confirm } from "../order/confirm.tsx";
import { Done, type Outcome } from "../order/done.tsx";
import { repeated } from "../order/repeat.ts";
import { refusalText, words } from "../order/words.ts";
import { problem, type OnsaleProblem } from "../shared/api.ts";
import { money, shortDateTime } from "../shared/format.ts";
import { useLoaded } from "../shared/hooks.ts";
import { Loading, Problem } from "../shared/layout.tsx";
import { may, routes, type Unmatched, type UnmatchedWord } from "./api.ts";
import { ReasonField, useReason } from "./reason-field.tsx";
import { t } from "./words.ts";

/** Milliseconds until they are asked for again: each is also told as an error when it is heard of. */
const POLL_MS = 60_000;

const keyOf = ({ provider, payment }: Unmatched) => `${provider} ${payment}`;

/** What is decided about a payment. */
interface Decision {
  readonly row: Unmatched;
  readonly word: UnmatchedWord;
}

/** The payments that wait for a decision. */
export function UnmatchedPayments() {
  return (
    <section aria-labelledby="unmatched">
      <h2 id="unmatched">{t("unmatched")}</h2>
      <List />
    </section>
  );
}

function List() {
  /** What was shown when more was asked for, with what came then: a payment that moves down from the newest stays on the list. */
  const [kept, setKept] = useState<{ unmatched: readonly Unmatched[]; next: string | null } | null>(null);
  const [failed, setFailed] = useState<OnsaleProblem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [decision, setDecision] = useState<Decision | null>(null);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const { data, failure, reload } = useLoaded(() => routes.unmatched(null), POLL_MS, []);
  if (data === null) {
    return failure === null ? <Loading /> : <Problem problem={failure} retry={() => void reload()} />;
  }
  const next = kept === null ? (data.next ?? null) : kept.next;
  const all = new Map([...data.unmatched, ...(kept?.unmatched ?? [])].map((row) => [keyOf(row), row]));
  const more = async () => {
    setBusy(true);
    try {
      const page = await routes.unmatched(next);
      setKept({ unmatched: [...all.values(), ...page.unmatched], next: page.next ?? null });
      setFailed(null);
    } catch (thrown) {
      setFailed(problem(thrown));
    }
    setBusy(false);
  };
  const ask = (wanted: Decision) => {
    setOutcome(null);
    setDecision(wanted);
  };
  const decided = async ({ row }: Decision, what: Outcome) => {
    await reload();
    setKept((before) => before && { ...before, unmatched: before.unmatched.filter((one) => keyOf(one) !== keyOf(row)) });
    setOutcome(what);
    setDecision(null);
  };
  return (
    <>
      {failure !== null && <Problem problem={failure} />}
      {outcome !== null && <Done {...outcome} />}
      {all.size === 0 && next === null ? <p class="hint">{t("unmatched-none")}</p> : (
        <div class="card">
          <p class="hint">{t("unmatched-hint")}{!may("refund") && <> {t("no-right.refund")}</>}</p>
          <ul class="unmatched-list">{[...all.values()].map((row) => <Row key={keyOf(row)} row={row} onAsk={(word) => ask({ row, word })} />)}</ul>
        </div>
      )}
      {failed !== null && <Problem problem={failed} />}
      {next !== null && <button type="button" disabled={isBusy} onClick={() => void more()}>{t("unmatched-more")}</button>}
      {decision !== null && <Decide {...decision} onDecided={(what) => decided(decision, what)} onClose={() => setDecision(null)} />}
    </>
  );
}

const payment = ({ provider, payment: name }: Unmatched) => <span class="url">{provider} {name}</span>;

function Row({ row, onAsk }: { readonly row: Unmatched; readonly onAsk: (word: UnmatchedWord) => void }) {
  const { order, minted, amount_minor, currency, decided_at } = row;
  const name = `unmatched ${keyOf(row)}`.replaceAll(/\s/g, "-");
  return (
    <li>
      <p id={name}><strong>{money(amount_minor, currency)}</strong> · {payment(row)}</p>
      <p class="hint">{shortDateTime(decided_at)} · {t("unmatched-order", { order })}</p>
      {!minted && <p class="warning">{t("unmatched-never")}</p>}
      {may("refund") && (
        <div class="row">
          <button type="button" class="danger" aria-describedby={name} onClick={() => onAsk("send_back")}>{t("unmatched.send_back")}…</button>
          <button type="button" aria-describedby={name} onClick={() => onAsk("explain")}>{t("unmatched.explain")}…</button>
        </div>
      )}
    </li>
  );
}

/** Asks for the reason, and sends the decision: the same again until it is known what became of it. */
function Decide({ row, word, onDecided, onClose }: Decision & {
  readonly onDecided: (outcome: Outcome) => Promise<void>; readonly onClose: () => void;
}) {
  const why = useReason();
  const [failure, setFailure] = useState<OnsaleProblem | null>(null);
  const [isSending, setSending] = useState(false);
  const values = { amount: money(row.amount_minor, row.currency), payment: keyOf(row) };
  const send = async () => {
    const reason = why.checked();
    if (reason === null) return;
    setSending(true);
    setFailure(null);
    try {
      await repeated(() => routes.tellUnmatched({ order: row.order, provider: row.provider, payment: row.payment, word, reason }));
      await onDecided({ isGood: true, text: t(`unmatched-done.${word}`, values) });
    } catch (thrown) {
      const refusal = problem(thrown);
      const over = overText(refusal, values);
      // What can be sent again keeps its reason.
      over === null ? setFailure(refusal) : await onDecided({ isGood: false, text: over });
    }
    setSending(false);
  };
  return (
    <Confirm title={t(`unmatched-sure.${word}`, values)} action={t(`unmatched.${word}`)} look={word === "send_back" ? "danger" : "primary"}
      isSending={isSending} onConfirm={() => void send()} onClose={onClose}>
      <p>{payment(row)} · {words.t("order-number", { order: row.order })}</p>
      <p>{t(`unmatched-text.${word}`)}</p>
      <ReasonField id="unmatched-reason" label={t("unmatched-reason")} hint={t("unmatched-reason-hint")} bad={t("unmatched-reason-bad")} reason={why} />
      {failure !== null && <Problem problem={failure} text={refusalText(failure)} />}
    </Confirm>
  );
}

/** The words of a refusal after which there is nothing to decide any more; null of all others. */
function overText({ slug }: OnsaleProblem, values: { readonly payment: string }): string | null {
  switch (slug) {
    case "said-otherwise": return t("unmatched-said-otherwise", values);
    case "not-found": return t("unmatched-gone", values);
    default: return null;
  }
}
