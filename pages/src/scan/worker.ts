/**
 * The service worker of the scanning page, `/sw.js`: keeps the page and its files, and nothing else. The page itself is
 * asked for first while there is a network, so that a new version is shown at once; its files never change.
 */

/** What the build puts in: the files of the page, and a name that changes with any of them. */
declare const SCAN_FILES: readonly string[];
declare const SCAN_VERSION: string;

interface LifeEvent extends Event {
  waitUntil(done: Promise<unknown>): void;
}
interface AskedEvent extends LifeEvent {
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}
interface Worker {
  readonly clients: { claim(): Promise<void> };
  addEventListener(kind: "install" | "activate", listener: (event: LifeEvent) => void): void;
  addEventListener(kind: "fetch", listener: (event: AskedEvent) => void): void;
}

const worker = self as unknown as Worker;
const PAGE = "/scan";
const PREFIX = "onsale-scan-";
const NAME = PREFIX + SCAN_VERSION;
/** Milliseconds after which a page that does not come is taken from what is kept. */
const PATIENCE_MS = 3_000;

async function install(): Promise<void> {
  const answer = await fetch(new Request(PAGE, { cache: "reload" }));
  const asked = (await answer.clone().text()).match(/\/assets\/[\w.-]+/g) ?? [];
  // While a new version is being put in place the page may be the old one still. Then this fails, and is tried again.
  if (!answer.ok || asked.length === 0 || asked.some((path) => !SCAN_FILES.includes(path))) {
    throw new Error("the page is not of this version");
  }
  const cache = await caches.open(NAME);
  await Promise.all([cache.put(PAGE, answer), cache.addAll([...SCAN_FILES])]);
}

async function activate(): Promise<void> {
  const old = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== NAME);
  await Promise.all(old.map((name) => caches.delete(name)));
  await worker.clients.claim();
}

async function kept(path: string): Promise<Response | undefined> {
  return (await caches.open(NAME)).match(path, { ignoreVary: true });
}

async function page(request: Request): Promise<Response> {
  try {
    const answer = await fetch(request, { signal: AbortSignal.timeout(PATIENCE_MS) });
    if (answer.ok) {
      return answer;
    }
  } catch {
    // There is no network, or it is too slow for a door.
  }
  return (await kept(PAGE)) ?? Response.error();
}

const file = async (request: Request, path: string): Promise<Response> => (await kept(path)) ?? fetch(request);

worker.addEventListener("install", (event) => event.waitUntil(install()));
worker.addEventListener("activate", (event) => event.waitUntil(activate()));
worker.addEventListener("fetch", (event) => {
  const { origin, pathname } = new URL(event.request.url);
  if (origin !== location.origin || event.request.method !== "GET") {
    return;
  }
  if (event.request.mode === "navigate" && pathname === PAGE) {
    event.respondWith(page(event.request));
  } else if (SCAN_FILES.includes(pathname)) {
    event.respondWith(file(event.request, pathname));
  }
});
