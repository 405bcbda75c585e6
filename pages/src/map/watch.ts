/** Asks for availability while the map is open and seen, at the age that the answer allows, and not at once with all others. */

/** Milliseconds until the next request: the document's age, at least a second, and up to half of it more by chance. */
export function nextMs(maxAgeSeconds: number, random: number): number {
  const age = Math.max(1, Number.isFinite(maxAgeSeconds) ? maxAgeSeconds : 1) * 1000;
  return age * (1 + random / 2);
}

/** Milliseconds after a failure: twice as long each time, half a minute at most, and not before `Retry-After`. */
export function afterFailureMs(failures: number, retryAfterSeconds: number | null, random: number): number {
  const ms = Math.max(1000 * 2 ** Math.min(failures, 5), (retryAfterSeconds ?? 0) * 1000);
  return Math.min(30_000, ms) * (0.75 + random / 2);
}

/** What is asked for, and what is done with it. */
export interface WatchOptions<T> {
  /** The element that has to be on the screen. */
  readonly element: Element;
  load(): Promise<T>;
  onAnswer(answer: T): void;
  onFailure(thrown: unknown): void;
  maxAgeSeconds(answer: T): number;
  retryAfterSeconds(thrown: unknown): number | null;
}

/** Starts watching; answers how to stop, and how to ask at once. */
export function watch<T>(options: WatchOptions<T>): { stop(): void; askNow(): void } {
  let isOnScreen = true;
  let isOver = false;
  let isAsking = false;
  let failures = 0;
  let dueAtMs = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const schedule = (ms: number): void => {
    dueAtMs = performance.now() + ms;
    clearTimeout(timer);
    if (!isOver) timer = setTimeout(() => void ask(), ms);
  };
  const isSeen = (): boolean => isOnScreen && !document.hidden;
  const ask = async (): Promise<void> => {
    if (isOver || isAsking || !isSeen()) return;
    isAsking = true;
    try {
      const answer = await options.load();
      failures = 0;
      if (!isOver) options.onAnswer(answer);
      schedule(nextMs(options.maxAgeSeconds(answer), Math.random()));
    } catch (thrown) {
      failures += 1;
      if (!isOver) options.onFailure(thrown);
      schedule(afterFailureMs(failures, options.retryAfterSeconds(thrown), Math.random()));
    } finally {
      isAsking = false;
    }
  };
  // Whoever looks again is answered when the next request is due, not sooner.
  const look = (): void => {
    if (isSeen()) schedule(Math.max(0, dueAtMs - performance.now()));
    else clearTimeout(timer);
  };
  const onScreen = new IntersectionObserver((entries) => {
    isOnScreen = entries[entries.length - 1]?.isIntersecting ?? isOnScreen;
    look();
  });
  onScreen.observe(options.element);
  document.addEventListener("visibilitychange", look);
  void ask();
  return {
    stop: () => {
      isOver = true;
      clearTimeout(timer);
      onScreen.disconnect();
      document.removeEventListener("visibilitychange", look);
    },
    askNow: () => schedule(0),
  };
}
