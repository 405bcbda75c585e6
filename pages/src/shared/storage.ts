/**
 * Storage of the tab and of the browser. Either may be forbidden or full: then what was put is kept in memory, as
 * long as the page lives, and {@link isForgetful} says so.
 */
const memory = new Map<string, string>();
let forgetful = false;

/** A place to keep text by key. */
export interface Store {
  get(key: string): string | null;
  /** Answers whether it is kept beyond the page. */
  set(key: string, value: string): boolean;
  remove(key: string): void;
}

/** The store over what `open` answers; `name` keeps what is in memory apart. */
export function storeOf(open: () => Storage, name: string): Store {
  const attempt = <T>(action: (storage: Storage) => T): T | undefined => {
    try {
      return action(open());
    } catch {
      forgetful = true;
      return undefined;
    }
  };
  const inMemory = (key: string) => `${name}/${key}`;
  return {
    get: (key) => memory.get(inMemory(key)) ?? attempt((storage) => storage.getItem(key)) ?? null,
    set: (key, value) => {
      memory.delete(inMemory(key));
      const isKept = attempt((storage) => {
        storage.setItem(key, value);
        return true;
      });
      if (isKept !== true) {
        memory.set(inMemory(key), value);
      }
      return isKept === true;
    },
    remove: (key) => {
      memory.delete(inMemory(key));
      attempt((storage) => storage.removeItem(key));
    },
  };
}

/** Lives as long as the tab. Tokens are kept here and nowhere else. */
export const tabStore = storeOf(() => sessionStorage, "tab");
/** Shared by all tabs, and outlives them. Never for tokens. */
export const browserStore = storeOf(() => localStorage, "browser");
/** True once something could not be kept beyond the page. */
export const isForgetful = (): boolean => forgetful;

/** A value that was kept as JSON; null if there is none, or it cannot be read. */
export function getJson<T>(store: Store, key: string): T | null {
  const text = store.get(key);
  if (text === null) {
    return null;
  }
  try {
    return JSON.parse(text) as T;
  } catch {
    return null;
  }
}

/** Keeps a value as JSON. */
export function setJson(store: Store, key: string, value: unknown): void {
  store.set(key, JSON.stringify(value));
}
