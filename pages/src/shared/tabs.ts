/**
 * What the open tabs of this browser tell each other, over a BroadcastChannel: only pages of this very origin hear it,
 * and nothing of it is stored. Where the browser has no such channel, each tab is by itself.
 */
import type { Role, Session } from "./session.ts";

/** What one tab tells the others. */
export type Message =
  /** An order of the buyer was made, paid, given up, or has run out. */
  | { readonly kind: "orders" }
  /** Whoever has a session is asked for it, and answers with it. */
  | { readonly kind: "ask"; readonly role: Role }
  | { readonly kind: "session"; readonly role: Role; readonly session: Session }
  /** Somebody has signed out. */
  | { readonly kind: "signed-out"; readonly role: Role };

const NAME = "onsale";
const listeners = new Set<(message: Message) => void>();
let channel: BroadcastChannel | null = null;

function hear({ data }: MessageEvent<unknown>): void {
  // A page of another version may say what this one does not know: whoever listens looks at the kind.
  if (typeof data === "object" && data !== null && typeof (data as { kind?: unknown }).kind === "string") {
    listeners.forEach((listener) => listener(data as Message));
  }
}

function open(): BroadcastChannel | null {
  if (channel === null && typeof document !== "undefined" && typeof BroadcastChannel !== "undefined") {
    channel = new BroadcastChannel(NAME);
    channel.addEventListener("message", hear);
    // A page that is kept for the back button hears nothing meanwhile: an open channel could keep it from being kept.
    addEventListener("pagehide", close, { once: true });
  }
  return channel;
}

function close(): void {
  channel?.close();
  channel = null;
  addEventListener("pageshow", () => listeners.size > 0 && open(), { once: true });
}

/** Tells the other tabs something; true if there is a channel to them. */
export function tellTabs(message: Message): boolean {
  const to = open();
  to?.postMessage(message);
  return to !== null;
}

/** Calls a function with what other tabs tell; answers how to stop. */
export function onTabs(listener: (message: Message) => void): () => void {
  listeners.add(listener);
  open();
  return () => listeners.delete(listener);
}
