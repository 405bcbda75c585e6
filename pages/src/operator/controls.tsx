/** The controls of a waiting room. */
import { useState } from "preact/hooks";

import { Confirm } from "../order/confirm.tsx";
import { repeated } from "../order/repeat.ts";
import { mayBeRepeated, words } from "../order/words.ts";
import { problem, type OnsaleProblem, type Schemas } from "../shared/api.ts";
import { problemText } from "../shared/layout.tsx";
import { announce } from "../shared/live.ts";
import { may, routes, type Command } from "./api.ts";
import { t, tn } from "./words.ts";

/** The most bytes of a notice. */
export const MOST_NOTICE_BYTES = 200;

/** Bytes of a text as it is sent. */
export const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

/** True if a text may be a notice: 1 to 200 bytes without control characters. */
export const isNotice = (text: string): boolean => text !== "" && bytesOf(text) <= MOST_NOTICE_BYTES && !/\p{Cc}/u.test(text);

interface ControlsProps {
  readonly sale: string;
  readonly room: Schemas["Document"];
  /** Takes the room as it is after a command. */
  readonly onRoom: (room: Schemas["Document"]) => void;
}

/** Something that is commanded, by the name that it has in words. */
interface Named {
  readonly command: Command["command"];
}

/** What came of a command. */
interface Came<C extends Named> {
  readonly command: C;
  readonly failure: OnsaleProblem | null;
}

/** Sends commands: one at a time, each again until it is known that it stands. */
export function useCommands<C extends Named, A>(route: (command: C) => Promise<A>, onAnswer: (answer: A) => void) {
  const [sending, setSending] = useState<C["command"] | null>(null);
  const [outcome, setOutcome] = useState<Came<C> | null>(null);
  const send = async (command: C): Promise<boolean> => {
    if (sending !== null) {
      return false;
    }
    setSending(command.command);
    let failure: OnsaleProblem | null = null;
    try {
      onAnswer(await repeated(() => route(command)));
      announce(t(`done.${command.command}`));
    } catch (thrown) {
      failure = problem(thrown);
    }
    setOutcome({ command, failure });
    setSending(null);
    return failure === null;
  };
  return { sending, outcome, send };
}

/** The controls; without the right to use them, why not. */
export function Controls({ sale, room, onRoom }: ControlsProps) {
  const { sending, outcome, send } = useCommands((command: Command) => routes.command(sale, command), onRoom);
  const [isClosing, setClosing] = useState(false);
  if (!may("operate")) {
    return <div class="card"><h3>{t("control")}</h3><p class="hint">{t("no-right.operate")}</p></div>;
  }
  const isClosed = room.state === "closed";
  const isBusy = sending !== null;
  const waiting = room.groups.reduce((sum, { joined, serving }) => sum + Math.max(0, joined - serving), 0);
  const close = async () => {
    await send({ command: "close" });
    setClosing(false);
  };
  return (
    <div class="card controls">
      <h3>{t("control")}</h3>
      <p class="hint">{t("control-hint")}</p>
      {isClosed ? <p class="notice warn">{t("gate-closed")}</p> : (
        <>
          <div class="row">
            {room.state === "paused"
              ? <button type="button" class="primary" aria-disabled={isBusy} onClick={() => void send({ command: "resume" })}>{t("resume")}</button>
              : <button type="button" class="primary" aria-disabled={isBusy} onClick={() => void send({ command: "pause" })}>{t("pause")}</button>}
            <button type="button" class="danger" aria-disabled={isBusy} onClick={() => setClosing(true)}>{t("close-room")}…</button>
          </div>
          <p class="hint">{t("pause-hint")}</p>
        </>
      )}
      <Outcome outcome={outcome} isBusy={isBusy} again={(command) => void send(command)} />
      {!isClosed && <Rate isBusy={isBusy} rate={room.rate} send={send} />}
      <Notice isBusy={isBusy} notice={room.notice ?? ""} send={send} />
      {!isClosed && <SoldOut isBusy={isBusy} isSoldOut={room.state === "sold_out"} send={send} />}
      {isClosing && (
        <Confirm title={t("close-sure")} action={t("close-room")} isSending={sending === "close"} onConfirm={() => void close()} onClose={() => setClosing(false)}>
          <p>{tn("close-text", waiting)}</p><p>{t("close-alternative")}</p>
        </Confirm>
      )}
    </div>
  );
}

/** What came of the last command, and sends it again if nobody knows. */
export function Outcome<C extends Named>({ outcome, isBusy, again }: {
  readonly outcome: Came<C> | null; readonly isBusy: boolean; readonly again: (command: C) => void;
}) {
  if (isBusy) {
    return <p class="notice">{words.t("sent")}</p>;
  }
  if (outcome === null) {
    return null;
  }
  const { command, failure } = outcome;
  if (failure === null) {
    return <p class="good">{t(`done.${command.command}`)}</p>;
  }
  const text = mayBeRepeated(failure) ? t("command-unknown") : failure.slug === "room-closed" ? t("room-closed") : problemText(failure);
  return (
    <div class="problem" role="alert">
      <p>{text}</p>
      {mayBeRepeated(failure) && <button type="button" onClick={() => again(command)}>{t("send-again")}</button>}
    </div>
  );
}

interface ControlProps {
  readonly isBusy: boolean;
  readonly send: (command: Command) => Promise<boolean>;
}

function Rate({ isBusy, rate, send }: ControlProps & { readonly rate: number }) {
  const [text, setText] = useState("");
  const [isBad, setBad] = useState(false);
  const submit = async () => {
    const value = Number(text);
    const isGood = /^\d{1,9}$/.test(text.trim()) && Number.isSafeInteger(value);
    setBad(!isGood);
    if (isGood && await send({ command: "rate", rate: value })) {
      setText("");
    }
  };
  return (
    <form noValidate onSubmit={(event) => { event.preventDefault(); void submit(); }}>
      <div class="row">
        <div class="field">
          <label for="rate">{t("rate")}</label>
          <input id="rate" type="text" inputMode="numeric" autocomplete="off" value={text} placeholder={String(rate)}
            aria-invalid={isBad} aria-describedby={isBad ? "rate-bad" : undefined} onInput={(event) => setText(event.currentTarget.value)} />
        </div>
        <button type="submit" aria-disabled={isBusy}>{t("rate-set")}</button>
        <button type="button" aria-disabled={isBusy} onClick={() => void send({ command: "rate" })}>{t("rate-clear")}</button>
      </div>
      {isBad && <p class="problem" id="rate-bad" role="alert">{t("rate-bad")}</p>}
    </form>
  );
}

function Notice({ isBusy, notice, send }: ControlProps & { readonly notice: string }) {
  const [text, setText] = useState("");
  const [isBad, setBad] = useState(false);
  const submit = async () => {
    const wanted = text.trim();
    setBad(!isNotice(wanted));
    if (isNotice(wanted) && await send({ command: "notice", notice: wanted })) {
      setText("");
    }
  };
  return (
    <form noValidate onSubmit={(event) => { event.preventDefault(); void submit(); }}>
      <div class="field">
        <label for="notice">{t("notice")}</label>
        <input id="notice" type="text" autocomplete="off" value={text} aria-describedby="notice-left" aria-invalid={isBad}
          onInput={(event) => setText(event.currentTarget.value)} />
        <p class="hint" id="notice-left">{t("notice-left", { left: MOST_NOTICE_BYTES - bytesOf(text.trim()) })}</p>
      </div>
      {isBad && <p class="problem" role="alert">{t("notice-bad")}</p>}
      <div class="row">
        <button type="submit" aria-disabled={isBusy}>{t("notice-set")}</button>
        {notice !== "" && <button type="button" aria-disabled={isBusy} onClick={() => void send({ command: "notice" })}>{t("notice-clear")}</button>}
      </div>
    </form>
  );
}

function SoldOut({ isBusy, isSoldOut, send }: ControlProps & { readonly isSoldOut: boolean }) {
  return (
    <div class="sold-out">
      <div class="row">
        <button type="button" aria-disabled={isBusy} onClick={() => void send({ command: "sold_out", sold_out: true })}>{t("sold-out-set")}</button>
        {isSoldOut && <button type="button" aria-disabled={isBusy} onClick={() => void send({ command: "sold_out", sold_out: false })}>{t("sold-out-clear")}</button>}
      </div>
      <p class="hint">{t("sold-out-hint")}</p>
    </div>
  );
}
