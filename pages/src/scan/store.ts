/**
 * What a door keeps in the browser's database: its settings, keys and lists, and each ticket that it let in, until and
 * after it was sent. No names: a code has none.
 */
import { openDB, type DBSchema, type IDBPDatabase } from "idb";

import type { FileForMap } from "../map/plan.ts";
import type { Schemas } from "../shared/api.ts";
import type { EventFacts } from "../shared/event.ts";
import { ticketKey, type First, type RevokedList, type Scan } from "./door.ts";
import type { TicketKey } from "./verify.ts";

/** Which door this device stands at. */
export interface Door {
  readonly sale: string;
  readonly title: string;
  /** What this door is called in the records. */
  readonly door: string;
  readonly tiers: readonly { readonly tier: string; readonly name: string }[];
  /** Stops of a train, in their order. */
  readonly stops: readonly Schemas["Stop"][];
  /** The day on which a train sets out. */
  readonly runsOn?: string;
  /** When and where the event is. */
  readonly event?: EventFacts;
  /** The seats of the sale, to say where one is; a door of an earlier version of this page has none. */
  readonly layout?: FileForMap;
}

/** A ticket that was let in, and what became of saying so. */
export interface KeptScan extends Scan {
  /** `waiting` to be sent; `sent`; `conflict`: another door let it in too; `refused` by the server, though it was let in. */
  readonly state: "waiting" | "sent" | "conflict" | "refused";
  /** The code, until it is sent. */
  readonly code?: string;
  /** The door that was first, where that is another scan than this. */
  readonly first?: First;
  /** False if somebody was told no in the end: the server answered while they stood there. */
  readonly wasLetIn: boolean;
}

interface Schema extends DBSchema {
  kept: { key: string; value: unknown };
  scans: { key: [string, string]; value: KeptScan & { readonly key: string }; indexes: { state: string } };
}

/** The database of a door. */
export class DoorStore {
  private constructor(private readonly database: IDBPDatabase<Schema>) {}

  /** Opens it. Throws where the browser keeps nothing. */
  static async open(name = "onsale-scan"): Promise<DoorStore> {
    const database = await openDB<Schema>(name, 1, {
      upgrade(made) {
        made.createObjectStore("kept");
        made.createObjectStore("scans", { keyPath: ["sale", "key"] }).createIndex("state", "state");
      },
    });
    return new DoorStore(database);
  }

  close(): void {
    this.database.close();
  }

  async #get<T>(key: string): Promise<T | null> {
    return ((await this.database.get("kept", key)) as T | undefined) ?? null;
  }

  async #put(key: string, value: unknown): Promise<void> {
    await this.database.put("kept", value, key);
  }

  door = (): Promise<Door | null> => this.#get<Door>("door");
  keepDoor = (door: Door | null): Promise<void> => this.#put("door", door);
  keys = async (): Promise<readonly TicketKey[]> => (await this.#get<readonly TicketKey[]>("keys")) ?? [];
  keepKeys = (keys: readonly TicketKey[]): Promise<void> => this.#put("keys", keys);
  list = (sale: string): Promise<RevokedList | null> => this.#get<RevokedList>(`list/${sale}`);
  keepList = (list: RevokedList): Promise<void> => this.#put(`list/${list.sale}`, list);
  /** Milliseconds that the server's clock is ahead of this device's. */
  offsetMs = (): Promise<number | null> => this.#get<number>("offset");
  keepOffset = (offsetMs: number): Promise<void> => this.#put("offset", offsetMs);

  /** Records a ticket that is let in, unless it was before: then that scan is given. Both in one transaction. */
  async record(scan: Scan, code: string): Promise<KeptScan | null> {
    const transaction = this.database.transaction("scans", "readwrite", { durability: "strict" });
    const key = ticketKey(scan.order, scan.ticket);
    const before = await transaction.store.get([scan.sale, key]);
    if (before === undefined) {
      await transaction.store.put({ ...scan, key, code, state: "waiting", wasLetIn: true });
    }
    await transaction.done;
    return before ?? null;
  }

  /** Puts a scan in place of what is kept of it. */
  async settle(scan: KeptScan): Promise<void> {
    await this.database.put("scans", { ...scan, key: ticketKey(scan.order, scan.ticket) });
  }

  /** The scans that are to be sent, the oldest first. */
  async waiting(): Promise<KeptScan[]> {
    const found = await this.database.getAllFromIndex("scans", "state", "waiting");
    return found.sort((one, other) => one.atMs - other.atMs);
  }

  /** Every scan of a sale here, the newest first. */
  async scans(sale: string): Promise<KeptScan[]> {
    const found = await this.database.getAll("scans", IDBKeyRange.bound([sale, ""], [sale, "\uffff"]));
    return found.sort((one, other) => other.atMs - one.atMs);
  }
}
