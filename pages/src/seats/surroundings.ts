/** What ordering needs, in a browser: the API, the tab's storage, the server's clock. */
import { buyer, problem, reply, type Schemas } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { keptPlace } from "../shared/place.ts";
import { browserStore, getJson, setJson, tabStore } from "../shared/storage.ts";
import type { Attempt, Step, Surroundings } from "./ordering.ts";

const DEVICE = "onsale.device";

/** A hint that is the same each time from this browser; nobody is known by it. */
function deviceHint(): string {
  const kept = browserStore.get(DEVICE);
  if (kept !== null && /^[0-9a-f-]{36}$/.test(kept)) return kept;
  const made = globalThis.crypto?.randomUUID?.() ?? "00000000-0000-4000-8000-000000000000";
  browserStore.set(DEVICE, made);
  return made;
}

/** An attempt that was kept, if it is one. */
function readAttempt(key: string): Attempt | null {
  const kept = getJson<Attempt>(tabStore, key);
  const isOne = kept !== null && typeof kept.admission?.token === "string" && Array.isArray(kept.lines);
  return isOne ? kept : null;
}

/** Surroundings for a sale; `signal` stops what waits. */
export function surroundings(sale: string, hasRoom: boolean, signal: AbortSignal, onStep: (step: Step) => void): Surroundings {
  const key = `onsale.attempt.${sale}`;
  const path = { params: { path: { sale } } };
  return {
    admit: (body) => reply(buyer.POST("/sales/{sale}/admissions", { ...path, body, headers: { "X-Device-Hint": deviceHint() } })),
    order: (body) => reply(buyer.POST("/sales/{sale}/orders", { ...path, body: body as unknown as Schemas["ReservationBody"] })),
    problem,
    nowMs: () => clock.nowMs(),
    wait: (ms) => waited(ms, signal),
    random: Math.random,
    keep: (attempt) => (attempt === null ? tabStore.remove(key) : setJson(tabStore, key, attempt)),
    kept: () => readAttempt(key),
    place: () => {
      const place = hasRoom ? keptPlace(sale) : null;
      return place === null || place.place === null ? null : { group: place.group, place: place.place, token: place.token };
    },
    onStep,
  };
}

function waited(ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve(false);
      return;
    }
    const timer = setTimeout(() => resolve(true), ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve(false);
    }, { once: true });
  });
}
