/** Ed25519: by the browser itself where it has that, else by a small library that is loaded only then. */
import { base64url, bytesOf, type Jws } from "./code.ts";

/** A public key of the deployment, as `GET /ticket-keys` has it. */
export interface TicketKey {
  readonly kid: string;
  /** The key's 32 bytes in base64url. */
  readonly x: string;
}

const KEY_BYTES = 32;

/** The keys of a JWKS that are of use here; others in it are no mistake. */
export function keysOf(document: unknown): TicketKey[] {
  const keys = (document as { keys?: unknown } | null)?.keys;
  return (Array.isArray(keys) ? (keys as Readonly<Record<string, unknown>>[]) : []).flatMap(({ kty, crv, kid, x }) =>
    kty === "OKP" && crv === "Ed25519" && typeof kid === "string" && typeof x === "string" && bytesOf(x)?.length === KEY_BYTES ? [{ kid, x }] : []);
}

/** Checks signatures. */
export type Verify = (key: TicketKey, signature: Uint8Array<ArrayBuffer>, signed: Uint8Array<ArrayBuffer>) => Promise<boolean>;

/** By the browser. Throws where it knows no Ed25519. */
export const byBrowser: Verify = async (key, signature, signed) => {
  const jwk = { kty: "OKP", crv: "Ed25519", x: key.x };
  const imported = await crypto.subtle.importKey("jwk", jwk, { name: "Ed25519" }, false, ["verify"]);
  return crypto.subtle.verify({ name: "Ed25519" }, imported, signature, signed);
};

/** By the library, as RFC 8032 wants it: no encoding of a point passes that the browser would refuse. */
export const byLibrary: Verify = async (key, signature, signed) => {
  const { verifyAsync } = await import("@noble/ed25519");
  return verifyAsync(signature, signed, bytesOf(key.x) ?? new Uint8Array(), { zip215: false });
};

let chosen: Promise<Verify> | null = null;

async function choose(): Promise<Verify> {
  try {
    const made = new Uint8Array(KEY_BYTES).fill(1);
    // Any key that decodes: whether the signature fits is of no matter, only whether the browser says so.
    await byBrowser({ kid: "", x: base64url(made) }, new Uint8Array(64), made);
    return byBrowser;
  } catch {
    return byLibrary;
  }
}

/** Which of the two this browser needs; found out once. */
export const verifier = (): Promise<Verify> => (chosen ??= choose());

/** Whether a JWS is signed by one of the keys: `unknown-key` if none has its name. */
export async function isSigned(jws: Jws, keys: readonly TicketKey[], verify?: Verify): Promise<"yes" | "no" | "unknown-key"> {
  const named = keys.filter(({ kid }) => kid === jws.kid);
  const check = named.length === 0 ? null : (verify ?? (await verifier()));
  if (check === null) {
    return "unknown-key";
  }
  for (const key of named) {
    if (await check(key, jws.signature, jws.signed)) {
      return "yes";
    }
  }
  return "no";
}
