/** Who is signed in, in this tab. The token is kept in the tab's storage and nowhere else. */
import { clock } from "./clock.ts";
import { getJson, setJson, tabStore } from "./storage.ts";

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
}

const keyOf = (role: Role) => `onsale.session.${role}`;
const listeners = new Set<() => void>();

/** The session of a role; null if nobody is signed in, or it has run out. */
export function session(role: Role): Session | null {
  const kept = getJson<Session>(tabStore, keyOf(role));
  // Until an answer has said the time, the local clock may be wrong by hours: then the API decides, by 401.
  const hasRunOut = (expiresAtMs: number) => clock.isKnown() && expiresAtMs <= clock.nowMs();
  return kept !== null && typeof kept.token === "string" && !hasRunOut(kept.expiresAtMs) ? kept : null;
}

/** Keeps a session. */
export function keepSession(role: Role, kept: Session): void {
  setJson(tabStore, keyOf(role), kept);
  listeners.forEach((listener) => listener());
}

/** Ends a session: signing out, or a token that the API refuses. */
export function endSession(role: Role): void {
  tabStore.remove(keyOf(role));
  listeners.forEach((listener) => listener());
}

/** Calls a function whenever somebody signs in or out; answers how to stop. */
export function onSession(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
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
