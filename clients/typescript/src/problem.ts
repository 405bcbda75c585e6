/** Refusals: problem documents (RFC 9457), and answers that are none. */
import { ADMISSION } from "./admission.ts";
import type { components } from "./schema.ts";

/** The problem documents of the API. */
type Documents = {
  [Name in keyof components["schemas"]]: Name extends `${string}Problem` ? components["schemas"][Name] : never;
}[keyof components["schemas"]];

type SlugOf<Type> = Type extends `/problems/${infer Slug}` ? Slug : never;

/**
 * The last part of a problem's `type`. `no-answer` is the client's own: the network failed or nothing came in
 * time, so that it is not known whether the request was carried out.
 */
export type ProblemSlug = SlugOf<Extract<Documents, { type: unknown }>["type"]> | "no-answer";

/**
 * What the refusal of a reservation leaves of its admission. `kept`: no order was made, and the admission may be sent
 * with another reservation. `used-up`: the admission makes no order any more. `undecided`: the same reservation, sent
 * again, tells whether an order was made.
 */
export type AdmissionFate = (typeof ADMISSION)[keyof typeof ADMISSION];

/** A request that was refused, or got no answer. */
export class OnsaleProblem extends Error {
  override readonly name = "OnsaleProblem";

  private constructor(
    /** Which problem: the last part of its `type`. An unknown one of a newer server is possible. */
    readonly slug: ProblemSlug,
    /** The HTTP status; 0 if no answer came. */
    readonly status: number,
    /** Seconds after which the same request may succeed; null if repeating it is no use. */
    readonly retryAfterSeconds: number | null,
    /** The whole document, with the members of its type. */
    readonly document: Readonly<Record<string, unknown>>,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /** The problem of a request without an answer. */
  static withoutAnswer(cause: unknown): OnsaleProblem {
    return new OnsaleProblem("no-answer", 0, 1, {}, "no answer came", { cause });
  }

  /** The problem of a response that is no success. */
  static fromResponse(status: number, retryAfter: string | null, body: unknown): OnsaleProblem {
    const document = isRecord(body) ? body : {};
    const seconds = numberOf(document["retry_after_seconds"]) ?? numberOf(retryAfter);
    const detail = document["detail"] ?? document["title"] ?? document["message"];
    const message = typeof detail === "string" ? detail : `status ${status}`;
    return new OnsaleProblem(slugOf(document["type"], status), status, seconds, document, message);
  }

  /**
   * What the refusal leaves of the admission. Without an answer, or if a server failed in a way that this client does not
   * know, an order may have been made; an unknown refusal of a newer server made none.
   */
  get admission(): AdmissionFate {
    const known = (ADMISSION as Partial<Record<string, AdmissionFate>>)[this.slug];
    return known ?? (this.status === 0 || this.status >= 500 ? "undecided" : "kept");
  }

  /** A member of the document that is text, such as `opens_at`; null if there is none. */
  text(member: string): string | null {
    const value = this.document[member];
    return typeof value === "string" ? value : null;
  }
}

/** The problem of a response. */
export function problemOf(response: Response, body: unknown): OnsaleProblem {
  return OnsaleProblem.fromResponse(response.status, response.headers.get("Retry-After"), parsed(body));
}

/** A body as JSON, if it is text that was not read as such. */
function parsed(body: unknown): unknown {
  if (typeof body !== "string") {
    return body;
  }
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}

/** API Gateway and proxies answer some requests by themselves, without a type. */
function slugOf(type: unknown, status: number): ProblemSlug {
  const prefix = "/problems/";
  if (typeof type === "string" && type.startsWith(prefix)) {
    return type.slice(prefix.length) as ProblemSlug;
  }
  switch (status) {
    case 400: return "malformed";
    case 401: return "not-authenticated";
    case 403: return "not-permitted";
    case 404: return "not-found";
    case 413: return "too-large";
    case 429: return "too-many-requests";
    default: return status >= 500 ? "unavailable" : "malformed";
  }
}

function numberOf(value: unknown): number | null {
  const number = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) && number >= 0 ? number : null;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
