/** The API, as buyers and operators ask it. */
import { createClient, OnsaleProblem, type OnsaleClient } from "onsale-client";

import { clock } from "./clock.ts";
import { endSession, session, type Role } from "./session.ts";

export { OnsaleProblem, reply, type ProblemSlug, type Schemas } from "onsale-client";

/** The address of the API: the same origin. */
export const API = "/api";

/** Ends the session whose token a request had, if the API refused it. */
function endIfRefused(role: Role, response: Response, sent: Headers): void {
  const token = sent.get("Authorization")?.replace(/^Bearer /, "");
  if (response.status === 401 && token !== undefined) {
    endSession(role, token);
  }
}

function clientOf(role: Role | null): OnsaleClient {
  return createClient({
    baseUrl: typeof location === "undefined" ? "http://localhost/api" : location.origin + API,
    ...(role === null ? {} : { token: () => session(role)?.token ?? null }),
    onResponse: (response, sentAtMs) => clock.observeResponse(response, sentAtMs),
    fetch: async (request) => {
      const response = await fetch(request);
      if (role !== null) {
        endIfRefused(role, response, request.headers);
      }
      return response;
    },
  });
}

/** Public routes: asked without a token, so that caches may answer. */
export const everyone = clientOf(null);
/** Routes of the buyer who is signed in. */
export const buyer = clientOf("buyers");
/** Routes of the operator who is signed in. */
export const operator = clientOf("operators");

/**
 * A request that the typed client does not know, such as of a route that is newer than it or answers no JSON.
 *
 * @throws {OnsaleProblem} if the request was refused, or no answer came.
 */
export async function ask(path: string, init: RequestInit & { role?: Role } = {}): Promise<Response> {
  const { role, ...rest } = init;
  const headers = new Headers(rest.headers);
  const token = role === undefined ? null : session(role)?.token;
  if (token) {
    headers.set("Authorization", `Bearer ${token}`);
  }
  const sentAtMs = Date.now();
  let response: Response;
  try {
    response = await fetch(API + path, { ...rest, headers, signal: rest.signal ?? AbortSignal.timeout(15_000) });
  } catch (cause) {
    throw OnsaleProblem.withoutAnswer(cause);
  }
  clock.observeResponse(response, sentAtMs);
  if (response.ok) {
    return response;
  }
  if (role !== undefined) {
    endIfRefused(role, response, headers);
  }
  const body: unknown = await response.json().catch(() => null);
  throw OnsaleProblem.fromResponse(response.status, response.headers.get("Retry-After"), body);
}

/** What was thrown, as a problem: anything else that fails counts as no answer. */
export const problem = (thrown: unknown): OnsaleProblem =>
  thrown instanceof OnsaleProblem ? thrown : OnsaleProblem.withoutAnswer(thrown);
