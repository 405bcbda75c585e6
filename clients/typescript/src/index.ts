/**
 * A typed client of the Onsale API. Paths, bodies and replies are those of the OpenAPI document
 * (`schema.ts` is generated from it); every refusal is an {@link OnsaleProblem}.
 */
import createFetchClient, { type Client } from "openapi-fetch";

import { EXPONENTS } from "./exponents.ts";
import type { components, paths } from "./schema.ts";
import { OnsaleProblem, problemOf } from "./problem.ts";

export type { components, operations, paths } from "./schema.ts";
export { type AdmissionFate, OnsaleProblem, type ProblemSlug } from "./problem.ts";

/** The types of bodies and replies by name, such as `Schemas["OrderReply"]`. */
export type Schemas = components["schemas"];

/**
 * The decimal places of a currency's minor unit by ISO 4217, as the API counts: 1,234 minor units of HUF are 12.34 forints.
 * What Intl says is how many people write, which may be fewer.
 */
export const exponentOf = (currency: string): number => EXPONENTS[currency.toUpperCase()] ?? 2;

/** What a client needs to know. */
export interface ClientOptions {
  /** Address of the API, such as `https://tickets.example/api`; no slash at its end. */
  readonly baseUrl: string;
  /** The bearer token for the next request, if there is one. Public routes are asked without. */
  readonly token?: () => string | null;
  /** Called with each response as it comes, of refusals too; `sentAtMs` is the local clock when its request left. */
  readonly onResponse?: (response: Response, sentAtMs: number) => void;
  /** The function that sends requests; the environment's `fetch` unless another is given. */
  readonly fetch?: (request: Request) => Promise<Response>;
  /** Milliseconds after which a request counts as lost, 15,000 unless set. */
  readonly timeoutMs?: number;
}

/** The client: `GET`, `PUT` and `POST` by path, each answering `{ data, error, response }`. */
export type OnsaleClient = Client<paths>;

/** Makes a client. */
export function createClient(options: ClientOptions): OnsaleClient {
  const send = options.fetch ?? ((request: Request) => fetch(request));
  const client = createFetchClient<paths>({
    baseUrl: options.baseUrl,
    fetch: async (request: Request) => {
      const token = options.token?.() ?? null;
      if (token !== null) {
        request.headers.set("Authorization", `Bearer ${token}`);
      }
      const sentAtMs = Date.now();
      const signal = AbortSignal.timeout(options.timeoutMs ?? 15_000);
      const response = await send(new Request(request, { signal: either(request.signal, signal) }));
      options.onResponse?.(response, sentAtMs);
      return response;
    },
  });
  return client;
}

/** A signal that ends with the first of two. */
function either(first: AbortSignal, second: AbortSignal): AbortSignal {
  const both = new AbortController();
  for (const signal of [first, second]) {
    if (signal.aborted) {
      both.abort(signal.reason);
    }
    signal.addEventListener("abort", () => both.abort(signal.reason), { once: true });
  }
  return both.signal;
}

/** What a call of the client answers. */
interface Outcome<T> {
  readonly data?: T;
  readonly error?: unknown;
  readonly response: Response;
}

/**
 * The reply of a call.
 *
 * @throws {OnsaleProblem} if the request was refused, or no answer came.
 */
export async function reply<T>(call: Promise<Outcome<T>>): Promise<T> {
  let outcome: Outcome<T>;
  try {
    outcome = await call;
  } catch (cause) {
    throw OnsaleProblem.withoutAnswer(cause);
  }
  if (!outcome.response.ok) {
    throw problemOf(outcome.response, outcome.error);
  }
  return outcome.data as T;
}
