/** The controls of a sale without a waiting room: it is paused, said to be sold out, and has a notice. */
import { useEffect, useState } from "preact/hooks";

import { everyone, reply, type Schemas } from "../shared/api.ts";
import { useLoaded } from "../shared/hooks.ts";
import { LANGUAGES } from "../shared/language.ts";
import { Loading, Problem } from "../shared/layout.tsx";
import { may, routes, type Standing } from "./api.ts";
import { Outcome, useCommands } from "./controls.tsx";
import { noticeOf, noticeTexts, type NoticeTexts } from "./notice.ts";
import { t } from "./words.ts";

/** Milliseconds between looks at what others say of the sale. */
const LOOK_MS = 10_000;

/** A command to a sale, by the name that it has in words, and what is sent. */
interface Said {
  readonly command: "pause" | "resume" | "sold_out" | "notice";
  readonly body: Standing;
}
type Send = (said: Said) => Promise<boolean>;

/** The controls; without the right to use them, why not; nothing if nothing is sold any more. */
export function StandingControls({ sale }: { readonly sale: string }) {
  const [said, setSaid] = useState<Schemas["SaleReply"] | null>(null);
  // The client's types of replies know no tuples.
  const load = async () => (await reply(everyone.GET("/sales/{sale}", { params: { path: { sale } } }))) as Schemas["SaleReply"];
  const { data, failure, reload } = useLoaded(load, LOOK_MS, [sale]);
  const { sending, outcome, send } = useCommands((one: Said) => routes.say(sale, one.body), setSaid);
  if (!may("operate")) {
    return <div class="card"><p class="hint">{t("no-right.operate")}</p></div>;
  }
  if (data === null) {
    return failure === null ? <Loading /> : <Problem problem={failure} retry={() => void reload()} />;
  }
  // What a command was answered with may be ahead of what is shown to everybody.
  const shown = said !== null && said.version > data.version ? said : data;
  if (shown.file.room != null || shown.state === "cancelled" || shown.state === "archived") {
    return null;
  }
  const { state, sold_out: isSoldOut, notice } = shown.file;
  const isBusy = sending !== null;
  const to = state === "paused" ? "resume" : "pause";
  return (
    <div class="card controls standing">
      <p class="hint">{t("standing-hint")}</p>
      <div class="row">
        <button type="button" class="primary" aria-disabled={isBusy} onClick={() => void send({ command: to, body: { state: to === "pause" ? "paused" : "open" } })}>{t(to)}</button>
      </div>
      <p class="hint">{t("standing-pause-hint")}</p>
      <Outcome outcome={outcome} isBusy={isBusy} again={(one) => void send(one)} />
      <NoticeForm isBusy={isBusy} notice={notice ?? null} send={send} />
      <div class="sold-out">
        <div class="row">
          <button type="button" aria-disabled={isBusy} onClick={() => void send({ command: "sold_out", body: { sold_out: isSoldOut !== true } })}>{t(isSoldOut === true ? "sold-out-clear" : "sold-out-set")}</button>
        </div>
        <p class="hint">{t("sold-out-hint")}</p>
      </div>
    </div>
  );
}

function NoticeForm({ isBusy, notice, send }: { readonly isBusy: boolean; readonly notice: Schemas["Text"] | null; readonly send: Send }) {
  const [texts, setTexts] = useState<NoticeTexts>(() => noticeTexts(notice));
  const [isBad, setBad] = useState(false);
  // What is being written stays until the notice is another one.
  useEffect(() => setTexts(noticeTexts(notice)), [JSON.stringify(notice)]);
  const submit = async () => {
    const said = noticeOf(texts);
    setBad(said === null);
    if (said !== null) {
      await send({ command: "notice", body: { notice: said } });
    }
  };
  return (
    <form noValidate onSubmit={(event) => { event.preventDefault(); void submit(); }}>
      {LANGUAGES.map(({ language, tag }) => (
        <div class="field" key={language}>
          <label for={`notice-${language}`}>{t(`standing-notice.${language}`)}</label>
          <input id={`notice-${language}`} type="text" lang={tag} autocomplete="off" value={texts[language]} aria-invalid={isBad} aria-describedby={isBad ? "notice-bad" : "notice-hint"}
            onInput={(event) => setTexts({ ...texts, [language]: event.currentTarget.value })} />
        </div>
      ))}
      <p class="hint" id="notice-hint">{t("standing-notice-hint")}</p>
      {isBad && <p class="problem" id="notice-bad" role="alert">{t("standing-notice-bad")}</p>}
      <div class="row">
        <button type="submit" aria-disabled={isBusy}>{t("notice-set")}</button>
        {notice !== null && <button type="button" aria-disabled={isBusy} onClick={() => void send({ command: "notice", body: { notice: null } })}>{t("notice-clear")}</button>}
      </div>
    </form>
  );
}
