/** A door at work: what is scanned is judged, recorded at once, and sent; while there is a network the server decides. */
import type { Claims } from "./code.ts";
import { judged, type Knowledge, type Refusal } from "./door.ts";
import { sendOne, sendSome, type Post } from "./send.ts";
import type { Door, DoorStore, KeptScan } from "./store.ts";
import type { Verify } from "./verify.ts";

/** What is said to whoever stands there. */
export type Verdict =
  /** Let in; `isConfirmed` is false while the server has not said that no other door was first. */
  | { readonly kind: "admitted"; readonly claims: Claims; readonly isConfirmed: boolean }
  | Refusal
  /** The server knows better than the list that is kept here. */
  | { readonly kind: "refused"; readonly claims: Claims };

/** What a door needs of its page. */
export interface Surroundings {
  readonly post: Post;
  /** Milliseconds since 1970 by the server's clock. */
  readonly nowMs: () => number;
  /** False if sending is of no use: no network, or nobody is signed in. */
  readonly canSend: () => boolean;
  /** Resolves when whoever stands there has waited long enough for the server. */
  readonly longEnough: () => Promise<void>;
  /** Called when something that was sent is settled. */
  readonly onSettled?: () => void;
  readonly verify?: Verify;
}

/** Milliseconds that somebody waits at a door for the server's answer. */
export const LONG_ENOUGH_MS = 2_000;

/** A door. */
export class Doorkeeper {
  #sending: Promise<unknown> = Promise.resolve();

  constructor(private readonly store: DoorStore, private readonly door: Door, private readonly around: Surroundings) {}

  /** One request after the other: a scan that is sent twice at once could be settled by the wrong answer. */
  #inTurn<T>(action: () => Promise<T>): Promise<T> {
    const done = this.#sending.then(action, action);
    this.#sending = done.then(() => this.around.onSettled?.(), () => {});
    return done;
  }

  /** Judges a code, and records that it is let in. Throws if that cannot be recorded: then nobody is let in. */
  async check(text: string, knowledge: Knowledge): Promise<Verdict> {
    const verdict = await judged(text, knowledge, this.around.verify);
    if (verdict.kind !== "good") {
      return verdict;
    }
    const { claims } = verdict;
    const scan = { sale: claims.sale, order: claims.order, ticket: claims.ticket, seat: claims.seat ?? claims.tier, door: this.door.door, atMs: Math.round(this.around.nowMs()) };
    const before = await this.store.record(scan, text.trim());
    if (before !== null) {
      return { kind: "already", claims, first: before.first ?? { door: before.door, atMs: before.atMs } };
    }
    return this.#confirmed({ ...scan, code: text.trim(), state: "waiting", wasLetIn: true }, claims);
  }

  /** Asks the server while there is one; without an answer in time the door decides by itself. */
  async #confirmed(scan: KeptScan, claims: Claims): Promise<Verdict> {
    if (!this.around.canSend()) {
      return { kind: "admitted", claims, isConfirmed: false };
    }
    const answer = this.#inTurn(() => sendOne(this.store, scan, this.around.post)).catch(() => null);
    const result = await Promise.race([answer, this.around.longEnough().then(() => null)]);
    if (result === null || result.state === "waiting") {
      return { kind: "admitted", claims, isConfirmed: false };
    }
    if (result.state === "sent") {
      return { kind: "admitted", claims, isConfirmed: true };
    }
    await this.store.settle({ ...result, wasLetIn: false });
    this.around.onSettled?.();
    return result.state === "conflict" ? { kind: "already", claims, first: result.first ?? { door: "?", atMs: result.atMs } } : { kind: "refused", claims };
  }

  /**
   * Sends everything that waits, and gives the tickets that two doors let in, as this door learnt now.
   *
   * @throws {OnsaleProblem} if some could not be sent: they wait on.
   */
  async send(): Promise<KeptScan[]> {
    const conflicts: KeptScan[] = [];
    for (;;) {
      const done = await this.#inTurn(() => sendSome(this.store, this.around.post));
      conflicts.push(...done.filter(({ state }) => state === "conflict"));
      if (done.length === 0) {
        return conflicts;
      }
    }
  }
}
