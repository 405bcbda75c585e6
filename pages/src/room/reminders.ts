/**
 * How somebody who waits is told of the turn: by a notification, a screen that stays on, a sound, the calendar. Nothing is
 * on, and no permission is asked for, until it is chosen; a page that is loaded again begins with nothing chosen.
 *
 * A file of its own, which the room loads when somebody wants it: the room itself stays small and needs nothing else. It
 * shares no state with the room, such as its clock: the time is an argument.
 */
import en from "../i18n/reminders.en.json";
import zh from "../i18n/reminders.zh.json";
import { language } from "../shared/language.ts";
import { saveFile } from "../shared/save.ts";
import { filled } from "../shared/text.ts";
import { CALENDAR_TYPE, calendarFile, calendarName } from "../tickets/calendar.ts";
import { h, say } from "./dom.ts";
import type { RoomDocument, Standing } from "./standing.ts";

const words = language === "zh" ? zh : en;
/** Milliseconds that the room stays for the sound before it goes on to the seats. */
const SOUND_MS = 1_000;
/** Seconds that the sound lasts. */
const TONE_SECONDS = 0.6;
/** How long before the turn the calendar says so, in minutes. */
const ALARM_MINUTES = 5;

/** When the turn comes at the earliest; null if nobody knows, and if it has come. */
export function turnAtMs(of: RoomDocument, standing: Standing, nowMs: number): number | null {
  if (standing.kind === "due" || standing.kind === "passed") return null;
  const atMs = standing.kind !== "waiting" ? Date.parse(of.opens_at) : standing.wait === null ? null : nowMs + standing.wait.fromMs;
  return atMs !== null && atMs > nowMs ? atMs : null;
}

/** The file for the calendar. `room` is the address of the room. */
export function turnFile({ title, room, atMs, nowMs }: { readonly title: string; readonly room: string; readonly atMs: number; readonly nowMs: number }): string | null {
  const { host, pathname } = new URL(room);
  return calendarFile({
    // The same for each: a file with a later estimate replaces the one before.
    uid: `turn-${pathname.split("/")[2]}@${host}`, title: filled(words["calendar.title"], { title }), description: words["calendar.text"],
    starts_at: new Date(atMs).toISOString(), stamp: new Date(nowMs).toISOString(), url: room, alarm_minutes: ALARM_MINUTES,
  });
}

/** What the room tells each second, and at each change. */
export interface Told {
  readonly title: string;
  readonly document: RoomDocument | null;
  readonly standing: Standing | null;
  /** True if the place is due and the gate admits. */
  readonly isDue: boolean;
  readonly nowMs: number;
}

/** The part of the page. */
export class Reminders {
  readonly #denied = h("p", { role: "status" });
  readonly #notify = h("input", { type: "checkbox" });
  readonly #awake = h("input", { type: "checkbox" });
  readonly #sound = h("input", { type: "checkbox" });
  readonly #calendar = h("button", { type: "button" }, words.calendar);
  readonly element = h("fieldset", { tabindex: "-1" }, h("legend", {}, words.legend), h("p", { class: "soft" }, words.phone));
  #told: Told | null = null;
  #lock: WakeLockSentinel | null = null;
  #isLocking = false;
  #audio: AudioContext | null = null;

  constructor() {
    this.#option(this.#notify, "Notification" in window, words.notify, async () => {
      if ((await Notification.requestPermission()) !== "granted") throw new Error("not granted");
      // Browsers on phones have the name, and throw here.
      new Notification(words.legend, { silent: true }).close();
    });
    this.#option(this.#awake, "wakeLock" in navigator, words.awake, () => this.#keepAwake());
    this.#option(this.#sound, "AudioContext" in window, words.sound, async () => {
      // Only what somebody has just pressed may begin to sound.
      this.#audio ??= new AudioContext();
      await this.#audio.resume();
      this.#play();
    });
    this.element.append(this.#calendar, this.#denied);
    this.#calendar.addEventListener("click", () => this.#save());
  }

  /** True if somebody is to be told by a page that they may not look at: it asks as often as another. */
  get isOn(): boolean {
    return this.#notify.checked || this.#sound.checked;
  }

  /** Takes what the room knows. Answers how many milliseconds the page stays here before it goes on to the seats. */
  show(told: Told): number {
    const wasDue = this.#told === null || this.#told.isDue;
    this.#told = told;
    this.#calendar.hidden = this.#turnAtMs() === null;
    this.element.hidden = told.standing === null || told.standing.kind === "due" || told.standing.kind === "passed";
    void this.#keepAwake().catch(() => {});
    return told.isDue && !wasDue ? this.#tell(told) : 0;
  }

  #option(box: HTMLInputElement, isThere: boolean, label: string, choose: () => Promise<void>): void {
    box.addEventListener("change", () => {
      say(this.#denied, "");
      choose().catch(() => {
        box.checked = false;
        say(this.#denied, words.denied);
      });
    });
    if (isThere) {
      this.element.append(h("label", {}, box, label));
    }
  }

  /**
   * Takes the lock if it is wanted and not held, or gives it back. The browser takes it away from a page that nobody looks at:
   * whoever comes back has it again within a second.
   */
  async #keepAwake(): Promise<void> {
    if (!this.#awake.checked || this.element.hidden) {
      await this.#lock?.release();
      this.#lock = null;
    } else if (!document.hidden && !this.#isLocking && (this.#lock === null || this.#lock.released)) {
      this.#isLocking = true;
      try {
        this.#lock = await navigator.wakeLock.request("screen");
      } finally {
        this.#isLocking = false;
      }
    }
  }

  #play(): void {
    const audio = this.#audio;
    if (this.#sound.checked && audio !== null) {
      const tone = audio.createOscillator();
      tone.connect(audio.destination);
      tone.start();
      tone.stop(audio.currentTime + TONE_SECONDS);
    }
  }

  #tell({ title }: Told): number {
    if (this.#notify.checked && document.hidden) {
      const notification = new Notification(words.turn, { body: title, requireInteraction: true });
      notification.addEventListener("click", () => window.focus());
    }
    this.#play();
    return this.#sound.checked ? SOUND_MS : 0;
  }

  #turnAtMs(): number | null {
    const { document: of, standing, nowMs } = this.#told ?? { document: null, standing: null, nowMs: 0 };
    return of === null || standing === null ? null : turnAtMs(of, standing, nowMs);
  }

  #save(): void {
    const atMs = this.#turnAtMs();
    if (this.#told === null || atMs === null) return;
    const { title, nowMs } = this.#told;
    const file = turnFile({ title, room: location.href, atMs, nowMs });
    if (file !== null) saveFile(new Blob([file], { type: CALENDAR_TYPE }), calendarName(title));
  }
}
