import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import openapiTS, { astToString, COMMENT_HEADER } from "openapi-typescript";

test("the types are those of the OpenAPI document", async () => {
  const document = new URL("../../../docs/openapi.json", import.meta.url);
  const generated = COMMENT_HEADER + astToString(await openapiTS(document, { defaultNonNullable: false, emptyObjectsUnknown: true }));
  const written = readFileSync(new URL("../src/schema.ts", import.meta.url), "utf8");
  assert.ok(written === generated, "src/schema.ts is stale: npm run generate -w clients/typescript");
});
