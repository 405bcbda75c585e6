/** The settings of the deployment, from `/config.json`. */
import { clock } from "./clock.ts";

/** An OpenID Connect issuer, and what we are to it. */
export interface Issuer {
  readonly issuer: string;
  readonly client_id: string;
  readonly scope: string;
}

/** The settings. */
export interface Config {
  readonly buyers: Issuer;
  readonly operators: Issuer;
  /** True if issuers may be asked over http: on one machine only. */
  readonly insecure_issuers?: boolean;
  /** How buyers may pay, the first one first. */
  readonly payments: readonly { readonly provider: string; readonly method: "page" | "form" | "code" }[];
}

let loading: Promise<Config> | null = null;

/** Loads the settings, once. A failure is forgotten, so that the next call tries again. */
export function config(): Promise<Config> {
  loading ??= load().catch((error: unknown) => {
    loading = null;
    throw error;
  });
  return loading;
}

async function load(): Promise<Config> {
  const sentAtMs = Date.now();
  // Not from the browser's cache: its header `Date`, which the clock is set by, would be of another day.
  const response = await fetch("/config.json", { cache: "no-store" });
  clock.observeResponse(response, sentAtMs);
  if (!response.ok) {
    throw new Error(`/config.json: ${response.status}`);
  }
  return (await response.json()) as Config;
}
