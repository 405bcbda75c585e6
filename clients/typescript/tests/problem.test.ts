import assert from "node:assert/strict";
import { test } from "node:test";

import { createClient, OnsaleProblem, reply } from "../src/index.ts";

/** A client whose every request is answered the same. */
function answering(response: () => Response) {
  const requests: Request[] = [];
  const fetch = async (request: Request) => {
    requests.push(request);
    return response();
  };
  return { requests, client: createClient({ baseUrl: "https://tickets.example/api", token: () => "t", fetch }) };
}

async function refused(response: () => Response): Promise<OnsaleProblem> {
  const { client } = answering(response);
  const problem = await reply(client.GET("/sales")).then(() => null, (thrown: unknown) => thrown);
  assert.ok(problem instanceof OnsaleProblem);
  return problem;
}

test("a reply is its data, and the token goes with the request", async () => {
  const { client, requests } = answering(() => Response.json({ sales: [] }));
  assert.deepEqual(await reply(client.GET("/sales", { params: { query: { limit: 5 } } })), { sales: [] });
  assert.equal(requests[0]?.url, "https://tickets.example/api/sales?limit=5");
  assert.equal(requests[0]?.headers.get("Authorization"), "Bearer t");
});

test("a refusal is a problem with its slug, its members and when to try again", async () => {
  const document = { type: "/problems/waiting", title: "Held seats may come back", status: 429, detail: "in a moment", retry_after_seconds: 3 };
  const problem = await refused(() => Response.json(document, { status: 429, headers: { "Content-Type": "application/problem+json" } }));
  assert.equal(problem.slug, "waiting");
  assert.equal(problem.status, 429);
  assert.equal(problem.retryAfterSeconds, 3);
  assert.equal(problem.message, "in a moment");
  assert.deepEqual(problem.document, document);
});

test("answers without a type are understood by their status", async () => {
  for (const [status, slug] of [[401, "not-authenticated"], [403, "not-permitted"], [429, "too-many-requests"], [502, "unavailable"]] as const) {
    assert.equal((await refused(() => Response.json({ message: "no" }, { status }))).slug, slug);
  }
  const page = await refused(() => new Response("<html>", { status: 503, headers: { "Retry-After": "7" } }));
  assert.equal(page.slug, "unavailable");
  assert.equal(page.retryAfterSeconds, 7);
});

test("no answer is a problem too", async () => {
  const problem = await refused(() => {
    throw new TypeError("fetch failed");
  });
  assert.equal(problem.slug, "no-answer");
  assert.equal(problem.status, 0);
});

test("a refusal says what it leaves of an admission", async () => {
  const of = (slug: string, status: number) => refused(() => Response.json({ type: `/problems/${slug}`, status }, { status }));
  assert.equal((await of("seat-taken", 409)).admission, "kept");
  assert.equal((await of("token-reused", 422)).admission, "used-up");
  assert.equal((await of("outcome-unknown", 503)).admission, "undecided");
  // Of a newer server: what it refuses made no order, what it fails at may have.
  assert.equal((await of("not-yet-known", 409)).admission, "kept");
  assert.equal((await of("not-yet-known", 500)).admission, "undecided");
});
