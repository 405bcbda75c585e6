/** Hooks that pages share. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { problem, type OnsaleProblem } from "./api.ts";
import { clock } from "./clock.ts";
import { announce } from "./live.ts";
import { askTabs, onSession, session, type Role, type Session } from "./session.ts";

/** The session of a role; the component renders again when somebody signs in or out, and when it has run out. */
export function useSession(role: Role): Session | null {
  const [current, setCurrent] = useState(() => session(role));
  useEffect(() => {
    const look = () => setCurrent((before) => {
      const now = session(role);
      // It has run out: another tab may have a newer one.
      if (before !== null && now === null) void askTabs(role);
      return before?.token === now?.token ? before : now;
    });
    const timer = setInterval(look, 5_000);
    const stop = onSession(look);
    return () => {
      clearInterval(timer);
      stop();
    };
  }, [role]);
  return current;
}

/** Milliseconds since 1970 by the server's clock, anew every `everyMs`. */
export function useNow(everyMs = 1_000): number {
  const [now, setNow] = useState(() => clock.nowMs());
  useEffect(() => {
    const timer = setInterval(() => setNow(clock.nowMs()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/**
 * Announces what is going on, each kind of it once: a text that counts seconds is no live region, which would be read out each
 * second, and what is tried again and again is not news.
 */
export function useTold(kind: string, text: string): void {
  const told = useRef(new Set<string>());
  useEffect(() => {
    if (!told.current.has(kind)) {
      told.current.add(kind);
      announce(text);
    }
  }, [kind]);
}

/** Calls a function when the page is looked at again: from another tab or program, by the back button, or with a network again. */
export function useReturn(back: () => void): void {
  const latest = useRef(back);
  latest.current = back;
  useEffect(() => {
    const look = () => {
      if (!document.hidden) latest.current();
    };
    const shown = (event: PageTransitionEvent) => event.persisted && look();
    document.addEventListener("visibilitychange", look);
    addEventListener("online", look);
    addEventListener("pageshow", shown);
    return () => {
      document.removeEventListener("visibilitychange", look);
      removeEventListener("online", look);
      removeEventListener("pageshow", shown);
    };
  }, []);
}

/** What was loaded, and what went wrong the last time. */
export interface Loaded<T> {
  /** The last answer; kept when a later request fails. */
  readonly data: T | null;
  /** Why the last request failed; null if it did not. */
  readonly failure: OnsaleProblem | null;
  /** Loads again, now. */
  readonly reload: () => Promise<void>;
}

/** Milliseconds between requests after failures: twice as long each time, jittered, a minute at most. */
export function backoffMs(failures: number, retryAfterSeconds: number | null, random: number): number {
  const ms = Math.max(1_000 * 2 ** Math.min(failures, 6), (retryAfterSeconds ?? 0) * 1_000);
  return Math.min(60_000, ms) * (0.75 + random / 2);
}

/**
 * Loads something, and again every `everyMs`, jittered, while the page is visible (null: once), later after failures.
 * `dependencies` are what `load` depends on.
 */
export function useLoaded<T>(load: () => Promise<T>, everyMs: number | null, dependencies: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<{ data: T | null; failure: OnsaleProblem | null }>({ data: null, failure: null });
  const reload = useRef<() => Promise<void>>(async () => {});
  useEffect(() => {
    let isOver = false;
    let failures = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = (ms: number) => {
      clearTimeout(timer);
      timer = setTimeout(() => (document.hidden ? again(1_000) : void attempt()), ms);
    };
    const attempt = async () => {
      try {
        const data = await load();
        failures = 0;
        if (!isOver) {
          setState({ data, failure: null });
          if (everyMs !== null) again(everyMs * (0.85 + Math.random() * 0.3));
        }
      } catch (thrown) {
        const failure = problem(thrown);
        if (!isOver) {
          setState((before) => ({ data: before.data, failure }));
          failures += 1;
          if (everyMs !== null || failure.retryAfterSeconds !== null) again(backoffMs(failures, failure.retryAfterSeconds, Math.random()));
        }
      }
    };
    reload.current = attempt;
    void attempt();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, dependencies);
  return { ...state, reload: useCallback(() => reload.current(), []) };
}
