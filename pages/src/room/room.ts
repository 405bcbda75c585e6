/** What the waiting room knows: the place that is kept here, the last document, and when it asks again. */
import { clock } from "../shared/clock.ts";
import { keepPlace, keptPlace, type KeptPlace } from "../shared/place.ts";
import { browserStore, getJson, setJson } from "../shared/storage.ts";
import { SOON_MS, isLeftOut, pauseMs } from "./poll.ts";
import { placeIn, type Window } from "./proof.ts";
import { standing, type RoomDocument, type RoomGroup, type Standing } from "./standing.ts";

/** Milliseconds after which a request counts as lost. */
const TIMEOUT_MS = 10_000;
/** How much older than the server's second a document from caches may be, in milliseconds. */
const DOCUMENT_AGE_MS = 2_000;

/** What is kept of a room between visits of the page. */
interface Kept {
  readonly document: RoomDocument;
  /** The root that was shown before the draw, by group. */
  readonly roots: Readonly<Record<string, string>>;
}

/** An answer that is no success. */
class Refused extends Error {
  constructor(readonly status: number, readonly retryAfterSeconds: number | null) {
    super(`status ${status}`);
  }
}

/** The state of the page. */
export class Room {
  document: RoomDocument | null = null;
  kept: KeptPlace | null;
  /** True if there is no such room (any more). */
  isGone = false;
  /** Requests that failed since the last answer. */
  failures = 0;
  /** True if the page is to tell of the turn also while nobody looks at it. */
  isReminding = false;
  #roots: Readonly<Record<string, string>> = {};
  #retryAfterSeconds: number | null = null;
  /** When to ask again, by a clock that nobody sets. */
  #nextAt = 0;
  #askedAt = -Infinity;
  #isAsking = false;

  constructor(readonly sale: string, private readonly onChange: () => void) {
    this.kept = keptPlace(sale);
    const before = getJson<Kept>(browserStore, this.#key());
    if (before?.document?.groups !== undefined) {
      this.document = before.document;
      this.#roots = before.roots ?? {};
    }
  }

  /** The group of the place that is kept here; the first one if none is. */
  group(): RoomGroup | null {
    const groups = this.document?.groups ?? [];
    return (this.kept === null ? groups[0] : groups.find(({ group }) => group === this.kept?.group)) ?? null;
  }

  /** How the place stands; null if there is none, or nothing is known. */
  standing(): Standing | null {
    const group = this.group();
    return this.document === null || group === null || this.kept === null
      ? null : standing(this.document, group, this.kept.index, this.kept.place, clock.nowMs());
  }

  /** The root that this browser was shown before the draw. */
  seenRoot(): string | null {
    return this.kept === null ? null : this.#roots[this.kept.group] ?? null;
  }

  /** Begins to ask, and goes on. One timer, a second each: whatever sleeps, it asks soon after waking up. */
  run(): void {
    const tick = () => {
      if (performance.now() >= this.#nextAt) {
        void this.ask();
      }
      this.onChange();
    };
    setInterval(tick, 1_000);
    addEventListener("online", () => this.#askSoon());
    addEventListener("pageshow", () => this.#askSoon());
    document.addEventListener("visibilitychange", () => document.hidden || this.#askSoon());
    addEventListener("storage", () => {
      this.kept = keptPlace(this.sale);
      this.onChange();
    });
    tick();
  }

  /** Gets JSON of an address below the room's. */
  async get(path: string): Promise<unknown> {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), TIMEOUT_MS);
    const sentAtMs = Date.now();
    try {
      const response = await fetch(`/api/sales/${this.sale}/room${path && `/${path}`}`, { signal: stop.signal, credentials: "omit" });
      if (!response.ok) {
        const seconds = Number(response.headers.get("Retry-After"));
        throw new Refused(response.status, seconds > 0 ? seconds : null);
      }
      const body = (await response.json()) as { as_of?: string };
      const asOfMs = Date.parse(body.as_of ?? "");
      clock.observe(asOfMs, asOfMs + DOCUMENT_AGE_MS, sentAtMs);
      return body;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Asks for the document, unless this request is to be left out. */
  async ask(): Promise<void> {
    if (this.#isAsking) {
      return;
    }
    const isLeft = this.failures === 0 && isLeftOut(this.document, this.standing(), Math.random());
    if (!isLeft) {
      this.#isAsking = true;
      this.#askedAt = performance.now();
      try {
        this.#take((await this.get("")) as RoomDocument);
        await this.#drawPlace();
        this.#noteDue();
      } catch (thrown) {
        this.#fail(thrown);
      }
      this.#isAsking = false;
    }
    this.#nextAt = performance.now() + this.#pauseMs();
    this.onChange();
  }

  #pauseMs(): number {
    return pauseMs({
      document: this.document, standing: this.standing(), nowMs: clock.nowMs(), isHidden: document.hidden && !this.isReminding,
      failures: this.failures, retryAfterSeconds: this.#retryAfterSeconds, random: Math.random(),
    });
  }

  /** Asks within the second, unless it has just done so: somebody looks again, or is online again. */
  #askSoon(): void {
    this.#nextAt = Math.min(this.#nextAt, Math.max(performance.now() + Math.random() * 1_000, this.#askedAt + SOON_MS));
    this.onChange();
  }

  #take(document: RoomDocument): void {
    if (!Array.isArray(document.groups)) {
      throw new TypeError("no room document");
    }
    this.failures = 0;
    this.#retryAfterSeconds = null;
    this.isGone = false;
    // Of two caches one may be a little behind: serving only grows.
    if (this.document !== null && Date.parse(document.as_of) < Date.parse(this.document.as_of)) {
      return;
    }
    this.document = document;
    for (const { group, root } of document.groups) {
      if (root !== undefined && this.#roots[group] === undefined) {
        this.#roots = { ...this.#roots, [group]: root };
      }
    }
    setJson(browserStore, this.#key(), { document, roots: this.#roots } satisfies Kept);
  }

  #fail(thrown: unknown): void {
    this.failures += 1;
    this.#retryAfterSeconds = thrown instanceof Refused ? thrown.retryAfterSeconds : null;
    this.isGone = thrown instanceof Refused && (thrown.status === 404 || thrown.status === 410);
  }

  /** Computes the place once its window is drawn. */
  async #drawPlace(): Promise<void> {
    const group = this.group();
    const kept = this.kept;
    if (kept === null || group === null || kept.place !== null || kept.index >= group.window) {
      return;
    }
    const place = await this.#placeOf(kept, group);
    if (place !== null && this.kept?.token === kept.token) {
      this.kept = { ...kept, place };
      keepPlace(this.kept);
    }
  }

  /** Keeps when the place was seen to be due, so that the next page can say how long it waits. */
  #noteDue(): void {
    const kept = this.kept;
    if (kept !== null && kept.dueAtMs === undefined && this.standing()?.kind === "due") {
      this.kept = { ...kept, dueAtMs: clock.nowMs() };
      keepPlace(this.kept);
    }
  }

  /** Of a later window, the address is asked that all who wait ask, which caches answer; only then one's own. */
  async #placeOf(kept: KeptPlace, group: RoomGroup): Promise<number | null> {
    if (group.seed !== undefined && group.count !== undefined && kept.index < group.count) {
      return placeIn({ first: 0, end: group.count, seed: group.seed, record: 0 }, kept.index);
    }
    for (const index of [group.window - 1, kept.index]) {
      const window = (await this.get(`windows/${kept.group}/${index}`)) as Window;
      if (kept.index >= window.first && kept.index < window.end) {
        return placeIn(window, kept.index);
      }
    }
    return null;
  }

  #key(): string {
    return `onsale.room.${this.sale}`;
  }
}
