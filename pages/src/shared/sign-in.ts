/**
 * Signing in: OpenID Connect, authorization code flow with PKCE, state and nonce, by oauth4webapi, which is loaded
 * only when somebody signs in.
 */
import { clock } from "./clock.ts";
import { config, type Config } from "./config.ts";
import { forgetKeptOfOthers } from "./kept-tickets.ts";
import { language } from "./language.ts";
import { keepSession, session, subjectOf, type Role, type Session } from "./session.ts";
import { getJson, isForgetful, tabStore } from "./storage.ts";

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

/** A path of this site from what may be anything: never another site's address. */
export function ownPath(path: string, origin: string): string {
  try {
    const url = new URL(path, origin);
    return url.origin === origin ? url.pathname + url.search + url.hash : "/";
  } catch {
    return "/";
  }
}

type Library = typeof import("oauth4webapi");

async function discovered(library: Library, settings: Config, role: Role) {
  const issuer = new URL(settings[role].issuer);
  const options = insecure(library, settings);
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
    state: started.state, nonce: started.nonce, ui_locales: language === "zh" ? "zh-CN" : "en",
  };
  Object.entries(parameters).forEach(([name, value]) => address.searchParams.set(name, value));
  location.assign(address);
}

/**
 * Ends a sign-in on `/signed-in`: exchanges the code, keeps the session, answers where to go on.
 *
 * @throws {SignInError}
 */
export async function completeSignIn(address: URL): Promise<string> {
  const started = getJson<Started>(tabStore, STARTED);
  tabStore.remove(STARTED);
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
  answer: { access_token: string; expires_in?: number; scope?: string }, claims: Readonly<Record<string, unknown>> | undefined,
): Session {
  const named = claims?.["name"] ?? claims?.["preferred_username"] ?? claims?.["email"] ?? claims?.["sub"];
  return {
    token: answer.access_token,
    expiresAtMs: clock.nowMs() + ((answer.expires_in ?? 300) - MARGIN_SECONDS) * 1000,
    name: typeof named === "string" ? named : null,
    scope: answer.scope ?? "",
  };
}
