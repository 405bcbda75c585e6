/** Publishing a sale: what is in the file, what changes, its map; then what the API says. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import "../event/event.css";
import "../event/picture.css";
import { Confirm } from "../order/confirm.tsx";
import { Done } from "../order/done.tsx";
import { repeated } from "../order/repeat.ts";
import { everyone, OnsaleProblem, problem, reply, type Schemas } from "../shared/api.ts";
import { dateTime, duration, money, number } from "../shared/format.ts";
import { href } from "../shared/language.ts";
import { Loading, Problem, problemText } from "../shared/layout.tsx";
import { may, routes } from "./api.ts";
import { namedPictures, withPictures, type MadePicture } from "./event-file.ts";
import { base64 } from "./picture-file.ts";
import { PicturesForm, type Outcome as PictureOutcome } from "./pictures-form.tsx";
import { changesOf, foreignChallenge, MOST_FILE_BYTES, NotASaleFile, placesOf, pricesOf, readSaleFile, tierChanges, type Change, type SaleFile } from "./sale-file.ts";
import { t, tn } from "./words.ts";

interface Chosen {
  readonly text: string;
  readonly file: SaleFile;
}

/** Chooses and publishes a sale file. */
export function Publish() {
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [refusal, setRefusal] = useState<string | null>(null);
  useEffect(() => void loadPreview().catch(() => {}), []);
  const choose = async (files: FileList | null) => {
    const file = files?.[0];
    setChosen(null);
    setRefusal(null);
    if (file === undefined) {
      return;
    }
    if (file.size > MOST_FILE_BYTES) {
      setRefusal(t("publish-too-large"));
      return;
    }
    try {
      const text = await file.text();
      setChosen({ text, file: readSaleFile(text) });
    } catch (thrown) {
      setRefusal(thrown instanceof NotASaleFile && thrown.reason === "sale" ? t("publish-not-sale") : t("publish-not-json", { reason: String((thrown as Error).message) }));
    }
  };
  if (!may("operate")) {
    return <><Back /><p class="notice warn">{t("no-right.operate")}</p></>;
  }
  return (
    <>
      <Back />
      <p>{t("publish-hint")}</p>
      <div class="field">
        <label for="file">{t("publish-file")}</label>
        <input id="file" type="file" accept=".json,application/json" onChange={(event) => void choose(event.currentTarget.files)} />
      </div>
      {refusal !== null && <p class="problem" role="alert">{refusal}</p>}
      {chosen !== null && <Review key={chosen.text} chosen={chosen} />}
    </>
  );
}

const Back = () => <p class="back"><a href={href("/operator")}>← {t("all-sales")}</a></p>;

/** What is published under an id: the sale, none, or nobody knows. */
type Published = Schemas["SaleReply"] | "none" | "unknown";

function usePublished(sale: string): [Published | null, (now: Published) => void] {
  const [published, setPublished] = useState<Published | null>(null);
  useEffect(() => {
    let isOver = false;
    reply(everyone.GET("/sales/{sale}", { params: { path: { sale } } })).then(
      // The client's types of replies know no tuples.
      (answer) => isOver || setPublished(answer as Schemas["SaleReply"]),
      (thrown: unknown) => isOver || setPublished(problem(thrown).status === 404 ? "none" : "unknown"),
    );
    return () => {
      isOver = true;
    };
  }, [sale]);
  return [published, setPublished];
}

type Outcome = { readonly done: Schemas["SaleReply"] } | { readonly failure: OnsaleProblem };

function Review({ chosen }: { readonly chosen: Chosen }) {
  const { file, text } = chosen;
  const foreign = foreignChallenge(file);
  const [published, setPublished] = usePublished(file.sale);
  const [isAsked, setAsked] = useState(false);
  const [isSending, setSending] = useState(false);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [pictures, setPictures] = useState<ReadonlyMap<string, PictureOutcome>>(new Map());
  const named = useMemo(() => namedPictures(file), [file]);
  const made = useMemo(() => new Map([...pictures].filter((one): one is [string, MadePicture] => typeof one[1] === "object")), [pictures]);
  const isComplete = named.every((name) => made.has(name));
  const send = async () => {
    setSending(true);
    try {
      // A sale is published once all that it names is there.
      for (const { sha256, bytes } of made.values()) await repeated(() => routes.keepPicture(sha256, base64(bytes)));
      const whole = named.length === 0 ? text : JSON.stringify(withPictures(file, made));
      const done = await repeated(() => routes.publish(file.sale, whole));
      setPublished(done);
      setOutcome({ done });
    } catch (thrown) {
      setOutcome({ failure: problem(thrown) });
    }
    setSending(false);
    setAsked(false);
  };
  return (
    <>
      <Summary file={file} />
      {foreign !== null && <p class="notice warn">{t("publish-siteverify", { provider: foreign })}</p>}
      {published === null ? <Loading /> : outcome === null && <Changes published={published} file={withPictures(file, made)} />}
      {named.length > 0 && <PicturesForm names={named} outcomes={pictures} onOutcomes={setPictures} />}
      <Preview file={file} made={made} />
      {outcome !== null && <Result outcome={outcome} sale={file.sale} />}
      {!isComplete && <p class="notice warn">{t("pictures-first")}</p>}
      <p><button type="button" class="primary" disabled={published === null || !isComplete} onClick={() => setAsked(true)}>{t("publish-send", { sale: file.sale })}</button></p>
      {isAsked && (
        <Confirm title={t("publish-sure", { sale: file.sale })} action={t("publish-send", { sale: file.sale })} isSending={isSending}
          onConfirm={() => void send()} onClose={() => setAsked(false)}>
          <p>{published === "none" ? t("publish-sure-new") : t("publish-sure-again")}</p>
        </Confirm>
      )}
    </>
  );
}

const isText = (value: unknown): value is string => typeof value === "string";

/** Money of a file that nobody has checked yet: without a currency that Intl knows, it is a number. */
function amount(minor: number, currency: unknown): string {
  try {
    return money(minor, isText(currency) ? currency : "");
  } catch {
    return number(minor);
  }
}

function Summary({ file }: { readonly file: SaleFile }) {
  const { refunds } = file;
  const stops = Array.isArray(file.stops) ? file.stops : [];
  return (
    <section aria-labelledby="summary">
      <h2 id="summary">{t("publish-summary")}</h2>
      <div class="card">
        <p><strong>{isText(file.title) ? file.title : file.sale}</strong></p>
        <dl class="facts">
          <dt>{t("publish-id")}</dt><dd>{file.sale}</dd>
          <dt>{t("publish-window")}</dt><dd>{isText(file.opens_at) ? dateTime(file.opens_at) : "–"} – {isText(file.closes_at) ? dateTime(file.closes_at) : "–"}</dd>
          <dt>{t("publish-state")}</dt><dd>{isText(file.state) ? file.state : "open"}</dd>
          <dt>{t("publish-limit")}</dt><dd>{typeof file.limit_per_buyer === "number" ? number(file.limit_per_buyer) : "–"}</dd>
          <dt>{t("publish-pay")}</dt><dd>{typeof file.pay_window_seconds === "number" ? duration(file.pay_window_seconds * 1_000) : "–"}</dd>
          {stops.length > 0 && <><dt>{t("publish-stops")}</dt><dd>{stops.map((stop) => stop.name ?? stop.stop).join(" → ")}</dd></>}
          <dt>{t("publish-room")}</dt><dd>{file.room === undefined || file.room === null ? t("publish-no") : t("publish-yes")}</dd>
          <dt>{t("publish-refunds")}</dt>
          <dd>{isText(refunds?.until) ? t("publish-refunds-until", { until: dateTime(refunds.until), percent: refunds.fee_percent ?? 0, fee: amount(refunds.fee_minor ?? 0, file.currency) }) : t("publish-no")}</dd>
        </dl>
        <h3>{t("publish-tiers")}</h3>
        <ul class="tier-list">
          {file.tiers.map((tier, at) => {
            const [places, prices] = [placesOf(tier), pricesOf(tier)];
            return (
              <li key={`${at}`}>
                <strong>{isText(tier.name) ? tier.name : tier.tier}</strong>
                <span class="hint">{places === null ? t("publish-places-unknown") : tn("publish-places", places)}</span>
                <span>{prices === null ? "–" : prices[0] === prices[1] ? amount(prices[0], file.currency) : `${amount(prices[0], file.currency)} – ${amount(prices[1], file.currency)}`}</span>
              </li>
            );
          })}
        </ul>
      </div>
    </section>
  );
}

function Changes({ published, file }: { readonly published: Published; readonly file: SaleFile }) {
  if (published === "none" || published === "unknown") {
    return <p class={published === "none" ? "notice" : "notice warn"}>{t(`publish-${published === "none" ? "new" : "unknown"}`)}</p>;
  }
  const changes = [...changesOf(published.file, file), ...tierChanges(published.file.tiers as SaleFile["tiers"], file.tiers)];
  const values = { version: published.version };
  return (
    <div class="notice">
      <p>{changes.length === 0 ? t("publish-same", values) : t("publish-again", values)}</p>
      {changes.length > 0 && <ul class="changes">{changes.map((change) => <ChangeLine key={change.field} {...change} />)}</ul>}
    </div>
  );
}

function ChangeLine({ field, before, after }: Change) {
  return <li><code>{field}</code>: <del>{before ?? "–"}</del> → <ins>{after ?? "–"}</ins></li>;
}

function Result({ outcome, sale }: { readonly outcome: Outcome; readonly sale: string }) {
  if ("failure" in outcome) {
    return <Refusal failure={outcome.failure} />;
  }
  const { version, warnings = [] } = outcome.done;
  return (
    <>
      <Done text={t("publish-done", { sale, version })} />
      <p><a class="button" href={href(`/operator?sale=${encodeURIComponent(sale)}`)}>{t("publish-to-sale")}</a></p>
      {warnings.length > 0 && (
        <div class="notice warn" role="status"><p>{t("publish-warnings")}</p><ul>{warnings.map((warning) => <li key={warning} lang="en">{warning}</li>)}</ul></div>
      )}
    </>
  );
}

function refusalOf({ slug }: OnsaleProblem): string | null {
  switch (slug) {
    case "seats-differ": case "room-differs": case "sale-cancelled": case "sale-archived": return t(`publish-${slug}`);
    default: return null;
  }
}

function Refusal({ failure }: { readonly failure: OnsaleProblem }) {
  const defects = Array.isArray(failure.document["defects"]) ? (failure.document["defects"] as Schemas["Defect"][]) : [];
  const heading = useRef<HTMLDivElement>(null);
  useEffect(() => heading.current?.focus(), [failure]);
  if (defects.length === 0) {
    return <Problem problem={failure} text={refusalOf(failure) ?? problemText(failure)} />;
  }
  return (
    <div class="problem" role="alert" tabIndex={-1} ref={heading}>
      <p>{tn("publish-defects", defects.length)}</p>
      <ul class="defects">{defects.map(({ at, rule }, index) => <li key={`${index}`}><code>{at}</code> <span lang="en">{rule}</span></li>)}</ul>
    </div>
  );
}

/** A browser does not load again what it could not load once: the page asks early, and says so if it failed. */
const loadPreview = () => import("./preview.tsx");

/** The event and the map of the file. */
function Preview({ file, made }: { readonly file: SaleFile; readonly made: ReadonlyMap<string, MadePicture> }) {
  const [loaded, setLoaded] = useState<typeof import("./preview.tsx") | null>(null);
  const [hasFailed, setFailed] = useState(false);
  useEffect(() => {
    let isOver = false;
    loadPreview().then((all) => isOver || setLoaded(all), () => isOver || setFailed(true));
    return () => {
      isOver = true;
    };
  }, []);
  return (
    <>
      {loaded !== null && file.event !== undefined && (
        <section aria-labelledby="event">
          <h2 id="event">{t("publish-event")}</h2>
          <div class="card"><loaded.Invitation file={file} made={made} /></div>
        </section>
      )}
      <section aria-labelledby="map">
        <h2 id="map">{t("publish-map")}</h2>
        {loaded !== null ? <loaded.Drawn file={file} /> : hasFailed ? <p class="notice warn">{t("publish-map-failed")}</p> : <Loading />}
      </section>
    </>
  );
}
