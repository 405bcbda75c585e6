/** Sends what a door has let in: each check-in once, however often it must be tried. */
import { OnsaleProblem, problem, type Schemas } from "../shared/api.ts";
import type { First } from "./door.ts";
import type { DoorStore, KeptScan } from "./store.ts";

/** A check-in, as it is sent. */
export type CheckIn = Schemas["CheckIn"];
/** What the API says to a check-in. */
export type CheckInResult = Schemas["CheckInResult"];

/** Sends check-ins of a sale, and gives a result for each, in their order. Throws an {@link OnsaleProblem}. */
export type Post = (sale: string, checkIns: readonly CheckIn[]) => Promise<readonly CheckInResult[]>;

/** The most check-ins of one request. */
export const MOST_CHECK_INS = 100;

const checkInOf = ({ code = "", door, atMs }: KeptScan): CheckIn => ({ code, door, at: new Date(atMs).toISOString() });

function firstOf({ first_at, first_door }: CheckInResult): First | null {
  const atMs = Date.parse(first_at ?? "");
  return Number.isNaN(atMs) || first_door === undefined ? null : { door: first_door, atMs };
}

/** A scan after its result. The code is not needed any more. */
export function settled({ code: _, ...scan }: KeptScan, result: CheckInResult): KeptScan {
  const first = firstOf(result);
  const isAnothers = first !== null && (first.door !== scan.door || first.atMs !== scan.atMs);
  switch (result.outcome) {
    case "admitted": return { ...scan, state: "sent" };
    // Sent before, and the answer was lost: who was first is said again.
    case "repeated": return isAnothers ? { ...scan, state: "conflict", first } : { ...scan, state: "sent" };
    case "already-admitted": return first === null ? { ...scan, state: "conflict" } : { ...scan, state: "conflict", first };
    case "revoked": case "invalid": return { ...scan, state: "refused" };
  }
}

/** True if repeating the request as it is cannot help: something in it is refused. */
const isRefused = (failure: OnsaleProblem): boolean => failure.status === 400 || failure.status === 413 || failure.status === 422;

async function sendBatch(store: DoorStore, sale: string, scans: readonly KeptScan[], post: Post): Promise<KeptScan[]> {
  let results: readonly CheckInResult[];
  try {
    results = await post(sale, scans.map(checkInOf));
  } catch (thrown) {
    const failure = problem(thrown);
    if (!isRefused(failure)) {
      throw failure;
    }
    if (scans.length > 1) {
      // One of them is to blame; the others must not wait for it.
      const half = Math.ceil(scans.length / 2);
      return [...(await sendBatch(store, sale, scans.slice(0, half), post)), ...(await sendBatch(store, sale, scans.slice(half), post))];
    }
    results = [{ outcome: "invalid" }];
  }
  if (results.length !== scans.length) {
    throw OnsaleProblem.withoutAnswer(new Error("the answer has not a result for each check-in"));
  }
  const done: KeptScan[] = [];
  for (const [at, scan] of scans.entries()) {
    const result = results[at];
    if (result !== undefined) {
      const after = settled(scan, result);
      await store.settle(after);
      done.push(after);
    }
  }
  return done;
}

/** Sends one scan, before the others that wait: somebody stands there. */
export const sendOne = async (store: DoorStore, scan: KeptScan, post: Post): Promise<KeptScan> => (await sendBatch(store, scan.sale, [scan], post))[0] ?? scan;

/**
 * Sends the oldest that wait, of one sale, as many as one request takes; gives what became of each, none if nothing waits.
 *
 * @throws {OnsaleProblem} if they could not be sent now: they wait on.
 */
export async function sendSome(store: DoorStore, post: Post): Promise<KeptScan[]> {
  const waiting = await store.waiting();
  const sale = waiting[0]?.sale;
  return sale === undefined ? [] : sendBatch(store, sale, waiting.filter((scan) => scan.sale === sale).slice(0, MOST_CHECK_INS), post);
}
