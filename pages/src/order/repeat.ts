/** Requests that may be repeated as they are, because the API carries each out once. */
import { problem } from "../shared/api.ts";
import { backoffMs } from "../shared/hooks.ts";
import { mayBeRepeated } from "./words.ts";

/** How often a request is sent before its person is asked. */
const MOST_ATTEMPTS = 3;

/**
 * Sends the same request until it is answered, three times at most.
 *
 * @throws {OnsaleProblem} if it was refused, or never answered.
 */
export async function repeated<T>(
  send: () => Promise<T>, pause: (ms: number) => Promise<void> = (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await send();
    } catch (thrown) {
      const failure = problem(thrown);
      if (attempt >= MOST_ATTEMPTS || !mayBeRepeated(failure)) {
        throw failure;
      }
      await pause(backoffMs(attempt - 1, failure.retryAfterSeconds, Math.random()));
    }
  }
}
