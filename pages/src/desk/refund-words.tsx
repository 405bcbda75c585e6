/** What an operator says of refunds that wait for a word: those that failed, and those that were made outside. */
import { useState } from "preact/hooks";

import { Confirm } from "../order/confirm.tsx";
import type { Outcome } from "../order/done.tsx";
import { repeated } from "../order/repeat.ts";
import { refusalText, type OrderRefund } from "../order/words.ts";
import { may, routes } from "../operator/api.ts";
import { ReasonField, useReason } from "../operator/reason-field.tsx";
import { problem } from "../shared/api.ts";
import { money } from "../shared/format.ts";
import { t } from "./words.ts";

type Word = "again" | "settled" | "keep";

interface WordsProps {
  readonly order: string;
  readonly refunds: readonly OrderRefund[];
  readonly reload: () => Promise<void>;
  /** Takes what came of it. */
  readonly onOutcome: (outcome: Outcome | null) => void;
}

/** The words that can be said of a refund in a state. */
function wordsOf(state: OrderRefund["state"]): readonly Word[] {
  switch (state) {
    case "failed": case "failed_later": return ["again", "settled"];
    case "outside": return ["keep"];
    default: return [];
  }
}

/** Each refund that waits for a word, and the words. */
export function RefundWords({ order, refunds, reload, onOutcome }: WordsProps) {
  const [asked, setAsked] = useState<{ readonly refund: OrderRefund; readonly word: Word } | null>(null);
  const waiting = refunds.filter(({ state }) => wordsOf(state).length > 0);
  if (waiting.length === 0) {
    return null;
  }
  const over = async (outcome: Outcome) => {
    await reload();
    onOutcome(outcome);
    setAsked(null);
  };
  return (
    <>
      {waiting.map((refund) => (
        <div key={refund.number}>
          <p class="warning">{t(refund.state === "outside" ? "word-outside" : "word-failed", valuesOf(refund))}</p>
          {may("refund") ? (
            <p class="row">
              {wordsOf(refund.state).map((word) => <button key={word} type="button" onClick={() => { onOutcome(null); setAsked({ refund, word }); }}>{t(`word.${word}`)}…</button>)}
            </p>
          ) : <p class="hint">{t("no-right.refund")}</p>}
        </div>
      ))}
      {asked !== null && <Say order={order} {...asked} onSaid={over} onClose={() => setAsked(null)} />}
    </>
  );
}

const valuesOf = ({ number, amount_minor, currency }: OrderRefund) => ({ number, amount: money(amount_minor, currency) });

interface SayProps {
  readonly order: string;
  readonly refund: OrderRefund;
  readonly word: Word;
  readonly onSaid: (outcome: Outcome) => Promise<void>;
  readonly onClose: () => void;
}

function Say({ order, refund, word, onSaid, onClose }: SayProps) {
  const how = useReason();
  const [isSending, setSending] = useState(false);
  const { number } = refund;
  const values = valuesOf(refund);
  const send = async () => {
    const settled = word === "settled" ? how.checked() : null;
    if (word === "settled" && settled === null) return;
    setSending(true);
    const said = word === "settled" ? { settled } : word === "again" ? { again: true } : { keep: true };
    try {
      await repeated(() => routes.refund(order, { number, ...said }));
      await onSaid({ isGood: true, text: t("word-done", values) });
    } catch (thrown) {
      const refusal = problem(thrown);
      await onSaid({ isGood: false, text: refusal.slug === "other-refund-state" ? t("word-over", values) : refusalText(refusal) });
    }
    setSending(false);
  };
  return (
    <Confirm title={t(`word-sure.${word}`, values)} action={t(`word.${word}`)} look={word === "keep" ? "primary" : "danger"}
      isSending={isSending} onConfirm={() => void send()} onClose={onClose}>
      <p>{t(`word-text.${word}`, values)}</p>
      {word === "settled" && <ReasonField id="word-how" label={t("word-how")} hint={t("word-how-hint")} bad={t("word-how-bad")} reason={how} />}
    </Confirm>
  );
}
