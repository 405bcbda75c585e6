/** What the waiting room shows. Elements are made once and filled again, so that focus and readers stay where they are. */
import { clock } from "../shared/clock.ts";
import { clockTime, countdown } from "../shared/format.ts";
import { href, language, LANGUAGES } from "../shared/language.ts";
import { session } from "../shared/session.ts";
import { isForgetful, tabStore } from "../shared/storage.ts";
import { fill, h, refill, say, type Child } from "./dom.ts";
import { CheckView } from "./check-view.ts";
import type { Reminders, Told } from "./reminders.ts";
import type { Room } from "./room.ts";
import { admits, type Range, type Standing } from "./standing.ts";
import { number, t } from "./text.ts";

/** The address of the file with the reminders, which the build puts in. */
declare const REMINDERS: string;
/** Milliseconds between two things that a reader is told of a wait. */
const TOLD_EVERY_MS = 60_000;
const MINUTE_MS = 60_000;

/** A wait in words. */
export function waitText({ fromMs, toMs }: Range): string {
  if (toMs <= MINUTE_MS) {
    return t("wait.short");
  }
  const unit = toMs > 120 * MINUTE_MS ? 60 * MINUTE_MS : MINUTE_MS;
  const [from, to] = [Math.max(1, Math.floor(fromMs / unit)), Math.ceil(toMs / unit)];
  return t(unit === MINUTE_MS ? "wait.minutes" : "wait.hours", { from, to: Math.max(to, from + 1) });
}

/** The page. */
export class View {
  readonly #title = h("h1");
  readonly #headline = h("h2");
  readonly #notice = h("p", { class: "box", role: "status", hidden: "" });
  readonly #state = h("p", { class: "box warn", role: "status", hidden: "" });
  readonly #trouble = h("p", { class: "box warn", role: "status", hidden: "" });
  readonly #body = h("div");
  readonly #actions = h("p", { class: "links" });
  readonly #tiers = h("p", { hidden: "" });
  readonly #fresh = h("p", { class: "soft" });
  readonly #told = h("p", { class: "unseen", role: "status" });
  readonly #check = new CheckView();
  readonly #remind = h("p", {}, h("button", { type: "button" }, t("remind")), h("span", { class: "soft", role: "status" }));
  #reminders: Reminders | null = null;
  #known: Told | null = null;
  #actionsOf = "";
  #toldAtMs = 0;

  constructor(private readonly sale: string) {
    this.#remind.firstChild?.addEventListener("click", () => void this.#openReminders());
    const languages = LANGUAGES.map(({ language: other, name, tag }) => h("li", {}, h("a", {
      href: href(location.pathname, other), lang: tag, hreflang: tag, "aria-current": other === language ? "true" : null,
    }, name)));
    const header = h("header", {}, h("a", { href: this.#path("") }, t("back")), h("ul", { "aria-label": t("language") }, ...languages));
    const main = h("main", { id: "main", tabindex: "-1" }, this.#title, h("div", { role: "status" }, this.#headline), this.#notice, this.#state, this.#trouble,
      this.#body, this.#actions, this.#remind, this.#tiers, this.#check.element, this.#fresh, this.#told);
    document.getElementById("app")?.replaceChildren(h("a", { class: "skip", href: "#main" }, t("skip")), header, main);
  }

  /** Shows what is known now. Called each second and at each change. */
  show(room: Room): void {
    const standing = room.standing();
    const nowMs = clock.nowMs();
    const title = room.kept?.title ?? this.sale;
    say(this.#title, `${title} · ${t("title")}`);
    const headline = this.#headlineOf(room, standing);
    say(this.#headline, headline);
    const mark = standing?.kind === "due" ? "● " : standing?.kind === "waiting" ? `${number(standing.ahead)} · ` : "";
    document.title = `${mark}${headline} · ${title}`;
    this.#showBoxes(room);
    refill(this.#body, this.#bodyOf(room, standing, nowMs));
    this.#showActions(room, standing);
    this.#showTiers(room);
    this.#check.show(room);
    say(this.#fresh, room.document === null ? "" : t("fresh", { time: clockTime(room.document.as_of) }));
    this.#tell(standing, nowMs);
    const isDue = standing?.kind === "due" && room.document !== null && admits(room.document) && room.failures === 0;
    const told = this.#known = { title, document: room.document, standing, isDue, nowMs };
    this.#remind.hidden = standing === null || standing.kind === "due" || standing.kind === "passed";
    const waitMs = this.#reminders?.show(told) ?? 0;
    room.isReminding = this.#reminders?.isOn ?? false;
    if (isDue) this.#goOn(standing.place, waitMs);
  }

  #path(rest: string): string {
    return href(`/s/${this.sale}${rest}`);
  }

  #headlineOf(room: Room, standing: Standing | null): string {
    if (room.isGone) {
      return t("gone");
    }
    return room.kept === null ? t("none") : standing === null ? t("title") : t(standing.kind);
  }

  #showBoxes(room: Room): void {
    const box = (element: HTMLElement, text: string | null) => {
      element.hidden = text === null;
      say(element, text ?? "");
    };
    const { document: of } = room;
    box(this.#notice, of?.notice === undefined ? null : `${t("notice")} ${of.notice}`);
    const state = of?.state;
    const isSpecial = state === "paused" || state === "recovering" || state === "stalled" || state === "sold_out" || state === "closed";
    box(this.#state, isSpecial && !room.isGone ? t(state) : null);
    const isFailing = room.failures > 0 && !room.isGone;
    box(this.#trouble, isFailing ? t(navigator.onLine ? "failing" : "offline") : isForgetful() ? t("forgetful") : null);
  }

  #bodyOf(room: Room, standing: Standing | null, nowMs: number): Child[] {
    const { document: of } = room;
    if (room.isGone) {
      return [h("p", {}, t("gone.text"))];
    }
    if (room.kept === null) {
      return [h("p", {}, t("none.text"))];
    }
    if (of === null || standing === null) {
      return [];
    }
    const until = (time: string, text: string) => [h("p", { class: "count", role: "timer" }, countdown(Date.parse(time) - nowMs)), h("p", { class: "soft" }, text)];
    const joined = room.group()?.joined ?? 0;
    switch (standing.kind) {
      case "joined":
        return [...until(of.draw_closes_at, t("joined.until")), h("p", {}, t("joined.text")),
          joined > 0 && h("p", {}, t(joined === 1 ? "joined.count.one" : "joined.count.other", { count: joined }))];
      case "drawing": return [h("p", {}, t("drawing.text"))];
      case "later": return [h("p", {}, t("later.text"))];
      case "drawn":
        return [facts([[t("place"), number(standing.place + 1)]]), ...until(of.opens_at, t("drawn.until")), h("p", {}, t("drawn.text"))];
      case "waiting": return waitingBody(standing);
      case "due": return [facts([[t("place"), number(standing.place + 1)]]), admits(of) && h("p", {}, t("due.text"))];
      case "passed": return [facts([[t("place"), number(standing.place + 1)]]), h("p", {}, t("passed.text"))];
    }
  }

  /** Links are made again only if others are to be shown: whoever has focused one keeps it. */
  #showActions(room: Room, standing: Standing | null): void {
    const actions: { to: string; text: string }[] = [];
    const isSignedIn = session("buyers") !== null;
    const may = room.document !== null && admits(room.document);
    if (room.kept === null && !room.isGone) {
      actions.push({ to: this.#path(""), text: t("none.go") });
    } else if (standing?.kind === "due" && may) {
      actions.push({ to: this.#target(), text: t(isSignedIn ? "due.go" : "due.sign-in") });
    } else if (standing?.kind === "passed" && may) {
      actions.push({ to: this.#path("/seats"), text: t("passed.go") }, { to: this.#path("?again=1"), text: t("passed.join") });
    }
    const key = JSON.stringify(actions);
    if (key !== this.#actionsOf) {
      this.#actionsOf = key;
      fill(this.#actions, actions.map(({ to, text }, at) => h("a", { class: at === 0 ? "go first" : "go", href: to }, text)));
    }
  }

  /** Where whoever is due goes: to choose, or to sign in first if the session of this tab has run out. */
  #target(): string {
    return this.#path(session("buyers") === null ? "?due=1" : "/seats");
  }

  #showTiers(room: Room): void {
    const names = room.kept?.tiers ?? [];
    const gone = (room.document?.tiers ?? []).flatMap((left, at) => (left === 0 ? [names[at] ?? t("tier", { number: at + 1 })] : []));
    const isShown = gone.length > 0 && room.document?.state !== "sold_out";
    this.#tiers.hidden = !isShown;
    say(this.#tiers, isShown ? t("gone-tiers", { tiers: gone.join(language === "zh" ? "、" : ", ") }) : "");
  }

  #tell(standing: Standing | null, nowMs: number): void {
    if (standing?.kind !== "waiting") {
      say(this.#told, "");
    } else if (nowMs - this.#toldAtMs >= TOLD_EVERY_MS) {
      this.#toldAtMs = nowMs;
      say(this.#told, t("waiting.live", { ahead: standing.ahead, wait: waitWords(standing) }));
    }
  }

  async #openReminders(): Promise<void> {
    try {
      const { Reminders } = (await import(REMINDERS)) as typeof import("./reminders.ts");
      this.#reminders = new Reminders();
      this.#reminders.show(this.#known as Told);
      this.#remind.replaceWith(this.#reminders.element);
      this.#reminders.element.focus();
    } catch {
      say(this.#remind.lastChild as HTMLElement, t("failing"));
    }
  }

  /** Goes on by itself, once for each place: whoever comes back by the back button decides for themselves. */
  #goOn(place: number, waitMs: number): void {
    const key = `onsale.went.${this.sale}`;
    if (!document.hidden && tabStore.get(key) !== String(place)) {
      tabStore.set(key, String(place));
      setTimeout(() => location.assign(this.#target()), waitMs);
    }
  }
}

function facts(rows: readonly (readonly [string, string])[]): HTMLElement {
  return h("dl", {}, ...rows.map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value))));
}

type Waiting = Extract<Standing, { kind: "waiting" }>;

/** The wait in words. A place to which the stock may not last has none, and is told what its turn depends on; else it is not known yet. */
export const waitWords = ({ wait, odds }: Pick<Waiting, "wait" | "odds">): string =>
  wait !== null ? waitText(wait) : t(odds === "possible" || odds === "unlikely" ? `wait.${odds}` : "wait.unknown");

function waitingBody(standing: Waiting): Child[] {
  const { place, ahead, odds } = standing;
  const progress = h("progress", { max: String(Math.max(1, place)), value: String(place - ahead), "aria-label": t("waiting") });
  return [
    facts([[t("place"), number(place + 1)], [t("ahead"), number(ahead)], [t("wait"), waitWords(standing)], [t("odds"), t(`odds.${odds}`)]]),
    progress,
  ];
}
