/**
 * The answer that a sale asks for at the gate or on joining: computed, copied from a picture, or to a question. A widget
 * of another company would be its script on our pages, which their policy refuses: that is said in words.
 */
import { useEffect, useState } from "preact/hooks";

import type { Schemas } from "./api.ts";
import { announce } from "./live.ts";
import { shared } from "./text.ts";

const { t } = shared;

/** A challenge, as a refusal has it. */
export type Challenge = Schemas["Challenge"];
/** The answer, as the body of the next request has it. */
export type Answer = Schemas["ChallengeAnswer"];

interface ChallengeFormProps {
  readonly challenge: Challenge;
  /** Called once with the answer. */
  readonly onAnswer: (answer: Answer) => void;
  /** True if the answer before was wrong. */
  readonly failed?: boolean;
}

/** Shows a challenge and hands on the answer. Give it the challenge's token as its key: each is answered once. */
export function ChallengeForm({ challenge, onAnswer, failed = false }: ChallengeFormProps) {
  useEffect(() => {
    announce(failed ? t("challenge.failed") : t("challenge.title"));
  }, [challenge]);
  return (
    <section class="card" aria-labelledby="challenge-title">
      <h2 id="challenge-title">{t("challenge.title")}</h2>
      {failed && <p class="notice warn">{t("challenge.failed")}</p>}
      {challenge.kind === "proof_of_work" && <ProofOfWork challenge={challenge} onAnswer={onAnswer} />}
      {challenge.kind === "image" && (
        <>
          <p><img src={challenge.image} alt={t("challenge.image-alt")} /></p>
          <Written token={challenge.token} label={t("challenge.image")} onAnswer={onAnswer} />
        </>
      )}
      {challenge.kind === "question" && <Written token={challenge.token} label={challenge.question} onAnswer={onAnswer} />}
      {challenge.kind === "siteverify" && <p class="problem">{t("challenge.unsupported", { provider: challenge.provider })}</p>}
    </section>
  );
}

function Written({ token, label, onAnswer }: { readonly token: string; readonly label: string; readonly onAnswer: (answer: Answer) => void }) {
  const [answer, setAnswer] = useState("");
  const send = (event: Event) => {
    event.preventDefault();
    if (answer.trim() !== "") {
      onAnswer({ token, answer: answer.trim() });
    }
  };
  return (
    <form onSubmit={send}>
      <div class="field">
        <label for="challenge-answer">{label}</label>
        <input id="challenge-answer" autocomplete="off" autocapitalize="none" spellcheck={false} required value={answer} onInput={(event) => setAnswer(event.currentTarget.value)} />
      </div>
      <button type="submit" class="primary">{t("challenge.send")}</button>
    </form>
  );
}

type Work = Extract<Challenge, { kind: "proof_of_work" }>;

function ProofOfWork({ challenge, onAnswer }: { readonly challenge: Work; readonly onAnswer: (answer: Answer) => void }) {
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    const stop = new AbortController();
    import("./proof-of-work.ts")
      .then(({ solve }) => solve(challenge.altcha, stop.signal))
      .then((answer) => stop.signal.aborted || onAnswer({ answer }), () => stop.signal.aborted || setFailed(true));
    return () => stop.abort();
  }, [challenge]);
  return failed ? <p class="problem">{t("challenge.not-computed")}</p> : <p role="status">{t("challenge.computing")}</p>;
}
