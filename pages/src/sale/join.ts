/** Joining the waiting room: until it is certain, through challenges and refusals that pass. */
import { buyer, OnsaleProblem, problem, reply, type Schemas } from "../shared/api.ts";
import type { Answer, Challenge } from "../shared/challenge.tsx";
import { clock } from "../shared/clock.ts";
import { keepPlace, type KeptPlace } from "../shared/place.ts";
import { session, subjectOf } from "../shared/session.ts";
import type { Sale } from "./next-step.ts";

/** What was entered. */
export interface Wish {
  readonly group: string;
  readonly code: string;
  readonly moreTime: boolean;
}

/** How an attempt ended. */
export type Outcome =
  | { readonly kind: "joined" }
  /** It is to be repeated, by itself, after a while. */
  | { readonly kind: "again"; readonly afterMs: number }
  | { readonly kind: "challenge"; readonly challenge: Challenge; readonly failed: boolean }
  | { readonly kind: "refused"; readonly problem: OnsaleProblem };

/** The body of a request. What is left out has its default. */
export const bodyOf = ({ group, code, moreTime }: Wish, answer: Answer | null): Schemas["PlaceBody"] => ({
  group,
  ...(moreTime ? { more_time: true } : {}),
  ...(code.trim() === "" ? {} : { code: code.trim() }),
  ...(answer === null ? {} : { challenge: answer }),
});

/** Makes one attempt, and keeps the place that it gives. */
export async function join(sale: Sale, wish: Wish, answer: Answer | null): Promise<Outcome> {
  try {
    const place = await reply(buyer.POST("/sales/{sale}/places", { params: { path: { sale: sale.sale } }, body: bodyOf(wish, answer) }));
    keepPlace(placeOf(sale, place, session("buyers")?.token ?? "", clock.nowMs()));
    return place.standing === "certain" ? { kind: "joined" } : { kind: "again", afterMs: place.retry_ms ?? 1_000 };
  } catch (thrown) {
    return outcomeOf(problem(thrown));
  }
}

/** The place to keep. */
export const placeOf = (sale: Sale, place: Schemas["PlaceReply"], token: string, nowMs: number): KeptPlace => ({
  sale: sale.sale, token: place.place_token, group: place.group, index: place.index, window: place.window, nonce: place.nonce,
  place: place.place ?? null, joinedAtMs: nowMs, buyer: subjectOf(token), title: sale.title, tiers: sale.file.tiers.map(({ name }) => name),
});

/** What a refusal means for joining. */
export function outcomeOf(refusal: OnsaleProblem): Outcome {
  switch (refusal.slug) {
    case "challenge-required": case "challenge-failed":
      return { kind: "challenge", challenge: refusal.document["challenge"] as Challenge, failed: refusal.slug === "challenge-failed" };
    case "too-many-requests": case "unavailable": case "outcome-unknown": case "no-answer": case "not-loaded":
      return { kind: "again", afterMs: (refusal.retryAfterSeconds ?? 2) * 1_000 * (1 + Math.random() * 0.3) };
    default: return { kind: "refused", problem: refusal };
  }
}
