/** A proof of work, solved by ALTCHA's own library. Loaded only when one is asked for. */
import { solveChallenge } from "altcha-lib";
import { deriveKey } from "altcha-lib/algorithms/web/pbkdf2";

import type { Schemas } from "./api.ts";

/**
 * The payload that the ALTCHA widget would give: base64 of `{"challenge", "solution"}`.
 *
 * @throws if it is given up, or nothing is found in time.
 */
export async function solve(challenge: Schemas["ProofOfWork"], signal: AbortSignal): Promise<string> {
  const controller = new AbortController();
  signal.addEventListener("abort", () => controller.abort(), { once: true });
  const solution = await solveChallenge({ challenge, deriveKey, controller });
  if (solution === null) {
    throw new Error("no solution");
  }
  const bytes = new TextEncoder().encode(JSON.stringify({ challenge, solution }));
  return btoa(String.fromCharCode(...bytes));
}
