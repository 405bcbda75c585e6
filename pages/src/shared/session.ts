/**
 * Who is signed in. The token is kept in the tab's storage and nowhere else; open tabs tell it to each other, so that
 * whoever is signed in in one of them is in all, and whoever signs out in one has signed out in all.
 */
import { clock } from "./clock.ts";
import { forgetKept } from "./kept-tickets.ts";
import { browserStore, getJson, setJson, tabStore } from "./storage.ts";
import { onTabs, tellTabs, type Message } from "./tabs.ts";

/** Buyers and operators have issuers, tokens and sessions of their own. */
export type Role = "buyers" | "operators";

/** A session. */
export interface Session {
  /** The access token, sent as a bearer token. */
  readonly token: string;
  /** When it runs out, by the server's clock. */
  readonly expiresAtMs: number;
  /** What to call the person, if the issuer said so. */
  readonly name: string | null;
  /** What the token allows, as the issuer said. */
  readonly scope: string;
  /** The id token that came with it: the issuer is shown it when the session is to end there too. */
  readonly idToken?: string;
  /** The mark of the last signing out before it began; a session with another mark than the browser's is over. */
  readonly since?: string;
}

const keyOf = (role: Role) => `onsale.session.${role}`;
const listeners = new Set<() => void>();
const changed = () => listeners.forEach((listener) => listener());

/** The mark of the last signing out, which no session outlives: also one in a tab that was elsewhere and heard nothing of it. */
const signedOutKey = (role: Role) => `onsale.signed-out.${role}`;
/** That mark; empty if nobody ever has. What is kept for a session is kept with it, and is over with it. */
export const signedOutMark = (role: Role): string => browserStore.get(signedOutKey(role)) ?? "";

/** True of a session that counts. Until an answer has said the time, the local clock may be wrong by hours: then the API decides, by 401. */
const counts = (role: Role, { expiresAtMs, since = "" }: Session) => since === signedOutMark(role) && !(clock.isKnown() && expiresAtMs <= clock.nowMs());

/** The session of a role; null if nobody is signed in, or it has run out. */
export function session(role: Role): Session | null {
  const kept = getJson<Session>(tabStore, keyOf(role));
  return kept !== null && typeof kept.token === "string" && counts(role, kept) ? kept : null;
}

/** Keeps a session that has just begun, and tells the other tabs. */
export function keepSession(role: Role, begun: Session): void {
  const kept = { ...begun, since: signedOutMark(role) };
  setJson(tabStore, keyOf(role), kept);
  tellTabs({ kind: "session", role, session: kept });
  changed();
}

/** Tokens that the API refused. */
const refused = new Set<string>();

/** Ends the session of this tab with a token that the API refused, if it is not another by now. Another tab may have a newer one. */
export function endSession(role: Role, token: string): void {
  refused.add(token);
  if (getJson<Session>(tabStore, keyOf(role))?.token !== token) {
    return;
  }
  tabStore.remove(keyOf(role));
  changed();
  void askTabs(role);
}

/** Signs out, in every tab; what was kept for the buyer is forgotten. */
export function signOut(role: Role): void {
  browserStore.set(signedOutKey(role), Math.random().toString(36).slice(2));
  tabStore.remove(keyOf(role));
  tellTabs({ kind: "signed-out", role });
  changed();
  forget(role);
}

/** Forgets what was kept; what shows it looks again then. */
function forget(role: Role): void {
  if (role === "buyers") {
    void forgetKept().then(changed);
  }
}

/** Calls a function whenever somebody signs in or out; answers how to stop. */
export function onSession(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Milliseconds that a page waits for the answer of another tab: one that is open answers in a few. */
const PATIENCE_MS = 120;

/**
 * Asks the other tabs for a session, if there is none here. Comes to an end with the first answer, or after so short a
 * time that nobody notices; an answer that comes later is taken all the same.
 */
export function askTabs(role: Role): Promise<void> {
  if (session(role) !== null || !tellTabs({ kind: "ask", role })) {
    return Promise.resolve();
  }
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      stop();
      resolve();
    };
    const timer = setTimeout(done, PATIENCE_MS);
    const stop = onSession(() => session(role) !== null && done());
  });
}

const isRole = (role: unknown): role is Role => role === "buyers" || role === "operators";

/** A session from another tab, if it is one that this tab may take: the first answer counts. */
export function mayTake(role: Role, offered: Session): boolean {
  return session(role) === null && typeof offered?.token === "string" && typeof offered.expiresAtMs === "number"
    && !refused.has(offered.token) && counts(role, offered);
}

function hear(message: Message): void {
  if (message.kind === "orders" || !isRole(message.role)) {
    return;
  }
  const { role } = message;
  const mine = session(role);
  switch (message.kind) {
    case "ask":
      if (mine !== null && !refused.has(mine.token)) tellTabs({ kind: "session", role, session: mine });
      break;
    case "session":
      // A buyer's page has no use for an operator's token.
      if (role === ownRole && mayTake(role, message.session)) {
        setJson(tabStore, keyOf(role), message.session);
        changed();
      }
      break;
    case "signed-out":
      tabStore.remove(keyOf(role));
      changed();
      forget(role);
      break;
  }
}

/** The role whose sessions this page takes from other tabs. */
let ownRole: Role | null = null;

/** Shares sessions with the other tabs from now on, and takes those of a role; of none where it is null. */
export function shareSessions(role: Role | null): void {
  ownRole = role;
  onTabs(hear);
  // Whoever comes back by the back button may have signed out meanwhile.
  addEventListener("pageshow", (event) => event.persisted && changed());
}

/** The `sub` of a bearer token; null if it has none that can be read. */
export function subjectOf(token: string): string | null {
  try {
    const [, payload = ""] = token.split(".");
    const bytes = Uint8Array.from(atob(payload.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
    const { sub } = JSON.parse(new TextDecoder().decode(bytes)) as { sub?: unknown };
    return typeof sub === "string" ? sub : null;
  } catch {
    return null;
  }
}
