/** A door at work: the field and the camera, what is said to a code, and what the device knows and has to send. */
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";

import { allows } from "../operator/api.ts";
import { operator, problem, reply, type OnsaleProblem } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { clockTime, duration, number, shortDateTime } from "../shared/format.ts";
import { backoffMs, useNow, useSession } from "../shared/hooks.ts";
import { Loading, problemText, SignInButton, useTab } from "../shared/layout.tsx";
import { announce } from "../shared/live.ts";
import { whereText } from "../shared/event.ts";
import { shortWhen } from "../order/when-where.tsx";
import { seatText } from "../shared/seat-place.ts";
import { session } from "../shared/session.ts";
import { CameraPart } from "./camera-part.tsx";
import type { Knowledge } from "./door.ts";
import { Doorkeeper, LONG_ENOUGH_MS, type Verdict } from "./keeper.ts";
import { loadLists } from "./lists.ts";
import { Outcome, Ready } from "./outcome.tsx";
import type { Post } from "./send.ts";
import { play } from "./sound.ts";
import type { Door, DoorStore, KeptScan } from "./store.ts";
import { t, tn } from "./words.ts";

/** Milliseconds between requests for the list, and between attempts to send. */
const POLL_MS = 15_000;
/** Milliseconds after which a list counts as old. */
const OLD_MS = 10 * 60_000;

const post: Post = async (sale, checkIns) =>
  (await reply(operator.POST("/operator/sales/{sale}/check-ins", { params: { path: { sale } }, body: { check_ins: [...checkIns] } }))).results;

const canSend = (): boolean => {
  const current = session("operators");
  return navigator.onLine && current !== null && allows(current.scope, "scan");
};

/** What the device knows: loaded at first from what is kept, then again and again. */
function useKnowledge(store: DoorStore, sale: string) {
  const [knowledge, setKnowledge] = useState<Knowledge | null>(null);
  const [failure, setFailure] = useState<OnsaleProblem | null>(null);
  const reload = useCallback(async () => {
    try {
      const { keys, list } = await loadLists(store, sale);
      setKnowledge({ sale, keys, list });
      setFailure(null);
      await store.keepOffset(clock.offsetMs());
    } catch (thrown) {
      setFailure(problem(thrown));
      throw thrown;
    }
  }, [store, sale]);
  useEffect(() => {
    void Promise.all([store.keys(), store.list(sale)]).then(([keys, list]) => {
      if (list !== null) setKnowledge((before) => before ?? { sale, keys, list });
    });
  }, [store, sale]);
  return { knowledge, failure, reload };
}

/** Does something now, when the network comes back, and again and again; later after failures. */
function useRepeated(action: () => Promise<unknown>): void {
  useEffect(() => {
    let isOver = false;
    let failures = 0;
    let timer: ReturnType<typeof setTimeout>;
    const attempt = async () => {
      clearTimeout(timer);
      try {
        await action();
        failures = 0;
      } catch {
        failures += 1;
      }
      if (!isOver) {
        clearTimeout(timer);
        timer = setTimeout(() => void attempt(), failures === 0 ? POLL_MS * (0.85 + Math.random() * 0.3) : backoffMs(failures, null, Math.random()));
      }
    };
    const now = () => { failures = 0; void attempt(); };
    void attempt();
    addEventListener("online", now);
    return () => {
      isOver = true;
      clearTimeout(timer);
      removeEventListener("online", now);
    };
  }, [action]);
}

interface DoorProps {
  readonly store: DoorStore;
  readonly door: Door;
  readonly opensOffline: "yes" | "no" | null;
  readonly onLeave: () => Promise<void>;
}

/** The door. */
export function DoorView({ store, door, opensOffline, onLeave }: DoorProps) {
  const current = useSession("operators");
  const { knowledge, failure, reload } = useKnowledge(store, door.sale);
  const [scans, setScans] = useState<readonly KeptScan[]>([]);
  const [waiting, setWaiting] = useState(0);
  const look = useCallback(async () => {
    setScans(await store.scans(door.sale));
    setWaiting((await store.waiting()).length);
  }, [store, door]);
  const keeper = useMemo(() => new Doorkeeper(store, door, {
    post, canSend, nowMs: () => clock.nowMs(), onSettled: () => void look(),
    longEnough: () => new Promise((enough) => setTimeout(enough, LONG_ENOUGH_MS)),
  }), [store, door]);
  const send = useCallback(async () => {
    if (!canSend()) return;
    const conflicts = await keeper.send();
    if (conflicts.length > 0) announce(tn("conflicts-new", conflicts.length));
  }, [keeper, current?.token]);
  useEffect(() => void look(), [look]);
  useRepeated(reload);
  useRepeated(send);
  useTab(`${door.title} · ${t("title")}`);
  const { event = null, runsOn = null, stops, tiers } = door;
  const facts = [shortWhen({ title: door.title, file: { tiers, stops, runs_on: runsOn, event } }), stops.length > 0 ? null : whereText(event?.venue)].filter((one) => one !== null).join(" · ");
  return (
    <>
      <p class="where">{door.title} <strong>{door.door}</strong>{facts !== "" && <span class="hint"><br />{facts}</span>}</p>
      {knowledge === null ? (failure === null ? <Loading /> : <p class="problem" role="alert">{t("no-list")} {problemText(failure)}</p>)
        : <Scanner keeper={keeper} knowledge={knowledge} door={door} onScan={() => void look()} />}
      <Conflicts scans={scans} door={door} />
      <Session hasSession={current !== null} mayScan={current === null || allows(current.scope, "scan")} waiting={waiting} />
      <section class="card" aria-labelledby="device">
        <h2 id="device">{t("device")}</h2>
        {knowledge !== null && <Age atMs={knowledge.list.atMs} isFailing={failure !== null} />}
        <dl class="facts">
          {knowledge !== null && <><dt>{t("list-size")}</dt><dd>{knowledge.list.isAll ? t("list-all") : number(Object.keys(knowledge.list.lowest).length)}</dd></>}
          <dt>{t("let-in")}</dt><dd>{number(scans.filter(({ wasLetIn }) => wasLetIn).length)}</dd>
          <dt>{t("waiting")}</dt><dd>{number(waiting)}</dd>
          <dt>{t("offline")}</dt><dd>{opensOffline === null ? t("offline-preparing") : t(`offline-${opensOffline}`)}</dd>
        </dl>
        <div class="row">
          <button type="button" onClick={() => { void reload().catch(() => {}); void send().catch(() => {}); }}>{t("load-now")}</button>
          <button type="button" onClick={() => void onLeave()}>{t("leave")}</button>
        </div>
        <p class="hint">{t("copies")}</p>
      </section>
    </>
  );
}

/** How old the list is: whoever gave a ticket back since then is let in. */
function Age({ atMs, isFailing }: { readonly atMs: number; readonly isFailing: boolean }) {
  const now = useNow(1_000);
  const ageMs = Math.max(0, now - atMs);
  const text = t("list-age", { age: duration(ageMs), time: shortDateTime(atMs) });
  return (
    <>
      <p class={ageMs > OLD_MS ? "notice warn" : "list-age"}>{text}{ageMs > OLD_MS && <> {t("list-old")}</>}</p>
      {isFailing && <p class="hint">{t("no-network")}</p>}
    </>
  );
}

function Session({ hasSession, mayScan, waiting }: { readonly hasSession: boolean; readonly mayScan: boolean; readonly waiting: number }) {
  if (hasSession && mayScan) {
    return null;
  }
  return (
    <div class="notice warn">
      <p>{hasSession ? t("no-right") : t("sign-in-to-send")} {waiting > 0 && tn("waits", waiting)}</p>
      {!hasSession && <SignInButton role="operators" />}
    </div>
  );
}

/** The tickets that this door and another let in. */
function Conflicts({ scans, door }: { readonly scans: readonly KeptScan[]; readonly door: Door }) {
  const both = scans.filter(({ state, wasLetIn }) => state === "conflict" && wasLetIn);
  const refused = scans.filter(({ state, wasLetIn }) => state === "refused" && wasLetIn);
  if (both.length + refused.length === 0) {
    return null;
  }
  return (
    <section class="notice warn conflicts" aria-labelledby="conflicts">
      <h2 id="conflicts">{t("conflicts")}</h2>
      <ul>
        {both.map((scan) => (
          <li key={`${scan.order}/${scan.ticket}`}>
            <strong>{seatText(door.layout ?? null, scan.seat)}</strong> · {t("ticket", { order: scan.order, ticket: scan.ticket })}: {t("conflict", {
              first: scan.first?.door ?? "?", firstTime: scan.first === undefined ? "?" : clockTime(scan.first.atMs), door: door.door, time: clockTime(scan.atMs),
            })}
          </li>
        ))}
        {refused.map((scan) => <li key={`${scan.order}/${scan.ticket}`}><strong>{seatText(door.layout ?? null, scan.seat)}</strong> · {t("ticket", { order: scan.order, ticket: scan.ticket })}: {t("let-in-void", { time: clockTime(scan.atMs) })}</li>)}
      </ul>
    </section>
  );
}

interface ScannerProps {
  readonly keeper: Doorkeeper;
  readonly knowledge: Knowledge;
  readonly door: Door;
  readonly onScan: () => void;
}

function Scanner({ keeper, knowledge, door, onScan }: ScannerProps) {
  const [verdict, setVerdict] = useState<{ readonly verdict: Verdict | "failed" | "checking"; readonly number: number } | null>(null);
  const [code, setCode] = useState("");
  const [hasSound, setSound] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const turn = useRef<Promise<void>>(Promise.resolve());
  const count = useRef(0);
  const latest = useRef({ knowledge, hasSound });
  latest.current = { knowledge, hasSound };
  useEffect(() => field.current?.focus(), []);
  const check = useCallback((text: string) => {
    // One after the other: the field is free for the next code at once, as hand scanners want it.
    turn.current = turn.current.then(async () => {
      count.current += 1;
      const place = count.current;
      setVerdict({ verdict: "checking", number: place });
      const said = await keeper.check(text, latest.current.knowledge).catch((): "failed" => "failed");
      setVerdict({ verdict: said, number: place });
      if (latest.current.hasSound) play(said !== "failed" && said.kind === "admitted");
      onScan();
    });
  }, [keeper, onScan]);
  const submit = () => {
    if (code.trim() !== "") check(code);
    setCode("");
    field.current?.focus();
  };
  return (
    <div class="scanner">
      <div class="said" role="status" aria-live="assertive" aria-atomic="true" data-judged={verdict === null || verdict.verdict === "checking" ? undefined : verdict.number}>{verdict === null ? <Ready /> : <Outcome key={verdict.number} verdict={verdict.verdict} door={door} />}</div>
      <form class="card" noValidate onSubmit={(event) => { event.preventDefault(); submit(); }}>
        <div class="row">
          <div class="field">
            <label for="code">{t("code")}</label>
            <input id="code" ref={field} type="text" autocomplete="off" autocapitalize="none" spellcheck={false} enterkeyhint="go" value={code} aria-describedby="code-hint"
              onInput={(event) => setCode(event.currentTarget.value)} />
          </div>
          <button type="submit" class="primary">{t("check")}</button>
        </div>
        <p class="hint" id="code-hint">{t("code-hint")}</p>
        <CameraPart onCode={check} />
        <label class="choice"><input type="checkbox" checked={hasSound} onChange={(event) => setSound(event.currentTarget.checked)} />{t("sound")}</label>
      </form>
    </div>
  );
}
