/**
 * The server's clock. The client's own may be wrong by hours, so that everything that counts down asks here.
 * What is known comes from the times in answers (`as_of`, and the header `Date`, which has whole seconds).
 */

/** Milliseconds that the offset may be wrong by before a new measurement replaces a more exact one. */
const MAX_DRIFT_MS = 2_000;

/** Estimates the offset between the server's clock and the local one. */
export class ServerClock {
  #offsetMs = 0;
  #uncertaintyMs = Number.POSITIVE_INFINITY;

  constructor(private readonly localMs: () => number = Date.now) {}

  /** Milliseconds since 1970 by the server's clock. */
  nowMs(): number {
    return this.localMs() + this.#offsetMs;
  }

  /** True once an answer has said the time. */
  isKnown(): boolean {
    return this.#uncertaintyMs !== Number.POSITIVE_INFINITY;
  }

  /** Starts from an offset that was kept from another visit, until an answer says better. */
  assume(offsetMs: number): void {
    if (!this.isKnown() && Number.isFinite(offsetMs)) {
      this.#offsetMs = offsetMs;
    }
  }

  /** Milliseconds that the server's clock is ahead of the local one. */
  offsetMs(): number {
    return this.#offsetMs;
  }

  /**
   * An answer that was made between `fromMs` and `toMs` by the server's clock, to a request that was sent at
   * `sentMs` by the local one, and is there now.
   */
  observe(fromMs: number, toMs: number, sentMs: number): void {
    const receivedMs = this.localMs();
    const offsetMs = (fromMs + toMs) / 2 - (sentMs + receivedMs) / 2;
    const uncertaintyMs = (toMs - fromMs + Math.max(0, receivedMs - sentMs)) / 2;
    const isAnotherTime = Math.abs(offsetMs - this.#offsetMs) > this.#uncertaintyMs + uncertaintyMs + MAX_DRIFT_MS;
    if (!Number.isNaN(offsetMs) && (isAnotherTime || uncertaintyMs <= this.#uncertaintyMs)) {
      this.#offsetMs = offsetMs;
      this.#uncertaintyMs = uncertaintyMs;
    }
  }

  /** Reads the header `Date` of a response; one from a cache is as much older as `Age` says. */
  observeResponse(response: Response, sentMs: number): void {
    const dateMs = Date.parse(response.headers.get("Date") ?? "");
    const ageMs = Number(response.headers.get("Age") ?? 0) * 1000;
    if (!Number.isNaN(dateMs) && !Number.isNaN(ageMs)) {
      this.observe(dateMs + ageMs, dateMs + ageMs + (ageMs > 0 ? 2_000 : 1_000), sentMs);
    }
  }
}

/** The server's clock, as this page knows it. */
export const clock = new ServerClock();
