/**
 * Signing in and out: OpenID Connect, authorization code flow with PKCE, state and nonce, by oauth4webapi, which is loaded
 * only when somebody does; RP-Initiated Logout, so that the issuer does not go on knowing whoever has signed out here.
 */
import { clock } from "./clock.ts";
import { config, type Config } from "./config.ts";
import { forgetKeptOfOthers } from "./kept-tickets.ts";
import { language } from "./language.ts";
import { keepSession, session, signOut, subjectOf, type Role, type Session } from "./session.ts";
import { browserStore, getJson, isForgetful, setJson, tabStore } from "./storage.ts";

/** What is kept in the tab while its person is at the issuer. */
interface Started {
  readonly role: Role;
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** Where to go afterwards: a path of this site. */
  readonly returnTo: string;
}

const STARTED = "onsale.signing-in";
/** Where to go once the issuer has ended its session: a path of this site. */
const LEAVING = "onsale.signing-out";
/** Milliseconds that the issuer has to say where its sessions are ended. */
const LEAVE_MS = 5_000;
/** Seconds that a session counts as over before its token runs out. */
const MARGIN_SECONDS = 10;

/** Why nobody was signed in. */
export class SignInError extends Error {
  override readonly name = "SignInError";
  constructor(
    /** `storage`: the tab keeps nothing; `answer`: the answer is not to a sign-in of this tab; `refused`: the issuer
     * or the person said no; `issuer`: the issuer did not answer, or not as it must. */
    readonly reason: "storage" | "answer" | "refused" | "issuer",
    options?: ErrorOptions,
  ) {
    super(reason, options);
  }
}

/** A path of this site from what may be anything: never another site's address, nor what becomes one when it is decoded or read again. */
export function ownPath(path: string, origin: string): string {
  try {
    const url = new URL(path, origin);
    return url.origin === origin && isOwn(url.pathname, origin) ? url.pathname + url.search + url.hash : "/";
  } catch {
    return "/";
  }
}

/** `/.//b` is the path `//b`, which is the site `b` where it is read as an address; so is `/%2fb`, once decoded. */
function isOwn(path: string, origin: string): boolean {
  const { origin: of, pathname } = new URL(path, origin);
  const decoded = decodeURIComponent(pathname);
  return of === origin && [path, pathname].every((one) => /^\/(?!\/)/.test(one)) && (decoded === path || isOwn(decoded, origin));
}

type Library = typeof import("oauth4webapi");

async function discovered(library: Library, settings: Config, role: Role, more: { signal?: AbortSignal } = {}) {
  const issuer = new URL(settings[role].issuer);
  const options = { ...insecure(library, settings), ...more };
  const response = await library.discoveryRequest(issuer, options);
  return library.processDiscoveryResponse(issuer, response);
}

/** Issuers over http are for one machine; a deployment's settings do not allow them. */
const insecure = (library: Library, settings: Config) =>
  settings.insecure_issuers === true ? { [library.allowInsecureRequests]: true } : {};

const redirectUri = () => `${location.origin}/signed-in`;

/**
 * Loads what signing in needs while there is a network: a browser does not ask again for a module that once failed to
 * come, so that whoever pressed the button in a tunnel could not sign in before the page was loaded anew.
 */
export function prepareSignIn(): void {
  void Promise.all([import("oauth4webapi"), config()]).catch(() => {});
}

const SHARED_COMPUTER = "onsale.shared-computer";
/** Whether somebody has said that others use this computer too. */
export const isSharedComputer = (): boolean => browserStore.get(SHARED_COMPUTER) !== null;
/** Keeps in the browser whether others use this computer too. */
export const keepSharedComputer = (isShared: boolean): void => (isShared ? void browserStore.set(SHARED_COMPUTER, "yes") : browserStore.remove(SHARED_COMPUTER));

/** True where the issuer always asks who signs in: several people work at an order desk and at a door. */
export const asksAlways = (role: Role, path: string): boolean => role === "operators" && /^\/(operator\/desk|scan)\b/.test(path);

/** Leaves for the issuer. The page that it was called on is come back to, unless another is named. */
export async function signIn(role: Role, returnTo: string = location.pathname + location.search): Promise<void> {
  const [library, settings] = await Promise.all([import("oauth4webapi"), config()]);
  const issuer = settings[role];
  let server;
  try {
    server = await discovered(library, settings, role);
  } catch (cause) {
    throw new SignInError("issuer", { cause });
  }
  const verifier = library.generateRandomCodeVerifier();
  const started: Started = {
    role, state: library.generateRandomState(), nonce: library.generateRandomNonce(), verifier,
    returnTo: ownPath(returnTo, location.origin),
  };
  if (!tabStore.set(STARTED, JSON.stringify(started))) {
    throw new SignInError("storage");
  }
  const address = new URL(server.authorization_endpoint ?? "");
  const parameters = {
    client_id: issuer.client_id, redirect_uri: redirectUri(), response_type: "code", scope: issuer.scope,
    code_challenge: await library.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256",
    state: started.state, nonce: started.nonce, ui_locales: localeOfIssuer(),
    // Not who is still signed in at the issuer: whoever is here now.
    ...(isSharedComputer() || asksAlways(role, started.returnTo) ? { prompt: "login" } : {}),
  };
  Object.entries(parameters).forEach(([name, value]) => address.searchParams.set(name, value));
  location.assign(address);
}

const localeOfIssuer = () => (language === "zh" ? "zh-CN" : "en");

/** The address at which an issuer ends its session (OpenID Connect RP-Initiated Logout 1.0), which then sends back to `backTo`. */
export function endSessionAddress(endpoint: string, { clientId, idToken, backTo, locale }: {
  readonly clientId: string; readonly idToken?: string | undefined; readonly backTo: string; readonly locale: string;
}): URL {
  const address = new URL(endpoint);
  const parameters = {
    ...(idToken === undefined ? {} : { id_token_hint: idToken }), client_id: clientId, post_logout_redirect_uri: backTo, ui_locales: locale,
    // What Cognito calls the address to come back to.
    logout_uri: backTo,
  };
  Object.entries(parameters).forEach(([name, value]) => address.searchParams.set(name, value));
  return address;
}

/**
 * Signs out: here at once and in every tab, whatever the issuer does; then leaves for the issuer, which ends its session too.
 * Answers `goes-on` if that session goes on: the issuer cannot be told to end it, or does not answer.
 */
export async function signOutAtIssuer(role: Role): Promise<"leaving" | "goes-on"> {
  const idToken = session(role)?.idToken;
  signOut(role);
  try {
    const [library, settings] = await Promise.all([import("oauth4webapi"), config()]);
    const server = await discovered(library, settings, role, { signal: AbortSignal.timeout(LEAVE_MS) });
    if (server.end_session_endpoint === undefined) {
      return "goes-on";
    }
    const address = endSessionAddress(server.end_session_endpoint, { clientId: settings[role].client_id, idToken, backTo: redirectUri(), locale: localeOfIssuer() });
    setJson(tabStore, LEAVING, ownPath(location.pathname + location.search, location.origin));
    location.assign(address);
    return "leaving";
  } catch {
    return "goes-on";
  }
}

/** Where whoever comes back to `/signed-in` was when they signed out; null if they come to be signed in. */
export function completeSignOut(address: URL): string | null {
  const isSignIn = address.searchParams.has("code") || address.searchParams.has("error");
  const from = isSignIn ? null : getJson<string>(tabStore, LEAVING);
  return typeof from === "string" ? ownPath(from, address.origin) : null;
}

/**
 * Ends a sign-in on `/signed-in`: exchanges the code, keeps the session, answers where to go on.
 *
 * @throws {SignInError}
 */
export async function completeSignIn(address: URL): Promise<string> {
  const started = getJson<Started>(tabStore, STARTED);
  tabStore.remove(STARTED);
  tabStore.remove(LEAVING);
  if (started === null) {
    throw new SignInError(isForgetful() ? "storage" : "answer");
  }
  const [library, settings] = await Promise.all([import("oauth4webapi"), config()]);
  const client = { client_id: settings[started.role].client_id };
  try {
    const server = await discovered(library, settings, started.role);
    const parameters = library.validateAuthResponse(server, client, address, started.state);
    const response = await library.authorizationCodeGrantRequest(
      server, client, library.None(), parameters, redirectUri(), started.verifier, insecure(library, settings));
    // Times in the token are checked by the server's clock, which the settings have told: ours may be an hour wrong, and the
    // issuer's answers, of another origin, do not show their `Date`.
    const skewed = { ...client, [library.clockSkew]: Math.round(clock.offsetMs() / 1000), [library.clockTolerance]: 60 };
    const answer = await library.processAuthorizationCodeResponse(server, skewed, response, { expectedNonce: started.nonce, requireIdToken: true });
    keepSession(started.role, sessionFrom(answer, library.getValidatedIdTokenClaims(answer)));
  } catch (cause) {
    throw new SignInError(cause instanceof library.AuthorizationResponseError ? "refused" : "issuer", { cause });
  }
  const signedIn = session(started.role);
  if (started.role === "buyers" && signedIn !== null) {
    // Before the page is left: what the buyer before did not sign out of is not for the next.
    await forgetKeptOfOthers(subjectOf(signedIn.token) ?? "").catch(() => {});
  }
  return started.returnTo;
}

function sessionFrom(
  answer: { access_token: string; expires_in?: number; scope?: string; id_token?: string }, claims: Readonly<Record<string, unknown>> | undefined,
): Session {
  const named = claims?.["name"] ?? claims?.["preferred_username"] ?? claims?.["email"] ?? claims?.["sub"];
  return {
    token: answer.access_token,
    expiresAtMs: clock.nowMs() + ((answer.expires_in ?? 300) - MARGIN_SECONDS) * 1000,
    name: typeof named === "string" ? named : null,
    scope: answer.scope ?? "",
    ...(answer.id_token === undefined ? {} : { idToken: answer.id_token }),
  };
}
