import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { exponentOf } from "../src/index.ts";

const { admissions, exponents, types } = await import(new URL("../generate.mjs", import.meta.url).href);
const written = (name: string) => readFileSync(new URL(`../src/${name}`, import.meta.url), "utf8");
const STALE = "is stale: npm run generate -w clients/typescript";

test("the types are those of the OpenAPI document", async () => {
  assert.ok(written("schema.ts") === await types(), `src/schema.ts ${STALE}`);
});

test("currencies have the minor units of the OpenAPI document", () => {
  const record: string = exponents();
  assert.ok(written("exponents.ts") === record, `src/exponents.ts ${STALE}`);
  const of = (currency: string) => exponentOf(currency);
  assert.deepEqual(["EUR", "HUF", "JPY", "KWD", "MGA", "CLF"].map(of), [2, 2, 0, 3, 2, 4]);
});

test("what becomes of an admission is what the OpenAPI document says", () => {
  const record: string = admissions();
  assert.ok(written("admission.ts") === record, `src/admission.ts ${STALE}`);
  for (const line of ['"seat-taken": "kept"', '"token-reused": "used-up"', '"outcome-unknown": "undecided"']) {
    assert.ok(record.includes(line), line);
  }
});
