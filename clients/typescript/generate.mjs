/**
 * Writes what of the client follows from the OpenAPI document: `src/schema.ts`, its types; `src/admission.ts`, what each
 * refusal leaves of an admission; and `src/exponents.ts`, the minor units of currencies. None is kept in git: setup writes them.
 */
import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString, COMMENT_HEADER } from "openapi-typescript";

const DOCUMENT = new URL("../../docs/openapi.json", import.meta.url);
const PREFIX = "/problems/";

/** The types of the document. */
export async function types() {
  return COMMENT_HEADER + astToString(await openapiTS(DOCUMENT, { defaultNonNullable: false, emptyObjectsUnknown: true }));
}

/** A record from the last part of a problem's `type` to its `x-onsale-admission`. */
export function admissions() {
  const { schemas } = JSON.parse(readFileSync(DOCUMENT, "utf8")).components;
  const fates = Object.values(schemas).flatMap((schema) => {
    const type = schema.properties?.type?.const;
    const fate = schema["x-onsale-admission"];
    return fate === undefined ? [] : [`  ${JSON.stringify(type.slice(PREFIX.length))}: ${JSON.stringify(fate)},`];
  });
  return `/** What the refusal of a reservation leaves of its admission, by problem: written by generate.mjs. */
export const ADMISSION = {
${fates.sort().join("\n")}
} as const;
`;
}

/** A record from currency to the decimal places of its minor unit, where they are not two. */
export function exponents() {
  const { schemas } = JSON.parse(readFileSync(DOCUMENT, "utf8")).components;
  const table = Object.values(schemas).map((schema) => schema["x-onsale-exponents"]).find((found) => found !== undefined);
  return `/** The decimal places of a currency's minor unit, where they are not two: written by generate.mjs. */
export const EXPONENTS: Readonly<Record<string, number>> = ${JSON.stringify(table)};
`;
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  writeFileSync(new URL("src/schema.ts", import.meta.url), await types());
  writeFileSync(new URL("src/admission.ts", import.meta.url), admissions());
  writeFileSync(new URL("src/exponents.ts", import.meta.url), exponents());
}
