/**
 * The service worker of the pages that open without a network, `/sw.js`: keeps a page and its files, and nothing else; what
 * the page shows, it keeps itself. The page itself is asked for first while there is a network, so that a new version is
 * shown at once; its files never change.
 *
 * Each page registers it for its own scope, so that there is a worker for each, which knows its page by the scope.
 */

/** A page that is kept. */
interface KeptPage {
  /** Its scope. */
  readonly scope: string;
  /** The path that it is asked for at, and kept by; a segment that is a parameter may be anything elsewhere. */
  readonly path: string;
  /** What the caches of its versions are called, up to the version. */
  readonly prefix: string;
  readonly files: readonly string[];
  /** Changes with any of the files, and with the page. */
  readonly version: string;
}

/** What the build puts in. */
declare const KEPT_PAGES: readonly KeptPage[];

interface LifeEvent extends Event {
  waitUntil(done: Promise<unknown>): void;
}
interface AskedEvent extends LifeEvent {
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}
interface Worker {
  readonly registration: { readonly scope: string };
  readonly clients: { claim(): Promise<void> };
  addEventListener(kind: "install" | "activate", listener: (event: LifeEvent) => void): void;
  addEventListener(kind: "fetch", listener: (event: AskedEvent) => void): void;
}

const worker = self as unknown as Worker;
const SCOPE = new URL(worker.registration.scope).pathname;
const KEPT = KEPT_PAGES.find(({ scope }) => scope === SCOPE);
const { path: PAGE, prefix: PREFIX, files: FILES }: Omit<KeptPage, "scope" | "version"> = KEPT ?? { path: "", prefix: "", files: [] };
const NAME = PREFIX + (KEPT?.version ?? "");
/** Milliseconds after which a page that does not come is taken from what is kept. */
const PATIENCE_MS = 3_000;

async function install(): Promise<void> {
  if (KEPT === undefined) {
    throw new Error(`no page has the scope ${SCOPE}`);
  }
  const answer = await fetch(new Request(PAGE, { cache: "reload" }));
  const asked = (await answer.clone().text()).match(/\/assets\/[\w.-]+/g) ?? [];
  // While a new version is being put in place the page may be the old one still. Then this fails, and is tried again.
  if (!answer.ok || asked.length === 0 || asked.some((path) => !FILES.includes(path))) {
    throw new Error("the page is not of this version");
  }
  const cache = await caches.open(NAME);
  await Promise.all([cache.put(PAGE, answer), cache.addAll([...FILES])]);
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

/** The page itself, or where the scope is a folder, a path right in it: no other path has a page there. */
const isPage = (pathname: string): boolean =>
  pathname === PAGE || (SCOPE.endsWith("/") && pathname.startsWith(SCOPE) && /^[^/]+$/.test(pathname.slice(SCOPE.length)));

const file = async (request: Request, path: string): Promise<Response> => (await kept(path)) ?? fetch(request);

worker.addEventListener("install", (event) => event.waitUntil(install()));
worker.addEventListener("activate", (event) => event.waitUntil(activate()));
worker.addEventListener("fetch", (event) => {
  const { origin, pathname } = new URL(event.request.url);
  if (origin !== location.origin || event.request.method !== "GET") {
    return;
  }
  if (event.request.mode === "navigate" && isPage(pathname)) {
    event.respondWith(page(event.request));
  } else if (FILES.includes(pathname)) {
    event.respondWith(file(event.request, pathname));
  }
});
