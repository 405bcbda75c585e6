/** Loads what a door must know: the deployment's keys, and a sale's signed list of revoked tickets. */
import { ask, OnsaleProblem } from "../shared/api.ts";
import { jwsOf, type Jws } from "./code.ts";
import { listOf, newerList, type RevokedList } from "./door.ts";
import type { DoorStore } from "./store.ts";
import { isSigned, keysOf, type TicketKey, type Verify } from "./verify.ts";

/** Asks the API for a document. */
export type Get = (path: string) => Promise<unknown>;

const getJson: Get = async (path) => (await ask(path)).json() as Promise<unknown>;

/** The most pages of a list: a limit on a loop that the server ends. */
const MOST_PAGES = 1_000;

const notAsMust = (what: string) => OnsaleProblem.withoutAnswer(new Error(what));

async function payloadsOf(sale: string, keys: readonly TicketKey[], get: Get, verify?: Verify): Promise<Jws["payload"][]> {
  const payloads: Jws["payload"][] = [];
  const path = `/sales/${encodeURIComponent(sale)}/revoked`;
  let next: string | null = null;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const document = (await get(next === null ? path : `${path}?from=${encodeURIComponent(next)}`)) as { list?: unknown } | null;
    const jws = typeof document?.list === "string" ? jwsOf(document.list, "revoked") : null;
    if (jws === null || (await isSigned(jws, keys, verify)) !== "yes") {
      throw notAsMust("the list of revoked tickets is not signed by a key of this deployment");
    }
    payloads.push(jws.payload);
    // It is signed too, so that no page can be left out.
    const following = jws.payload["next"];
    if (typeof following !== "string") {
      return payloads;
    }
    next = following;
  }
  throw notAsMust("the list of revoked tickets does not end");
}

/**
 * Loads keys and list, and keeps them; what is kept stays if it is newer.
 *
 * @throws {OnsaleProblem} if one of them does not come, or is not signed as it must be: what was kept is kept.
 */
export async function loadLists(store: DoorStore, sale: string, get: Get = getJson, verify?: Verify): Promise<{ keys: readonly TicketKey[]; list: RevokedList }> {
  const keys = keysOf(await get("/ticket-keys"));
  if (keys.length === 0) {
    throw notAsMust("there are no keys");
  }
  const loaded = listOf(await payloadsOf(sale, keys, get, verify), sale);
  if (loaded === null) {
    throw notAsMust("the list of revoked tickets is not of this sale");
  }
  const list = newerList(await store.list(sale), loaded);
  await store.keepKeys(keys);
  await store.keepList(list);
  return { keys, list };
}
