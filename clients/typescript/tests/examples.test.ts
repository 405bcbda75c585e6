/** The examples of README.md: they always compile, and run where there is an engine. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";

import { build } from "esbuild";

/** Tests run in the folder of the client. */
const EXAMPLES = `.test/examples-${process.pid}`;

/** The examples as one module, with what they are given. */
function written(): string {
  const blocks = [...readFileSync("README.md", "utf8").matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = ""]) => code);
  assert.ok(blocks.length >= 6, "the page has its examples");
  const code = blocks.join("\n").replaceAll('"onsale-client"', '"../../src/index.ts"');
  return `declare const process: { env: Record<string, string> };
const url = process.env["ONSALE_URL"]!, bearer = process.env["BEARER"]!;
${code}
const known: { order: string; state: string } = { order: order.order, state: cancelled.state };
console.log("done", known.order, known.state, typeof join);
export {};
`;
}

test("the examples compile", () => {
  mkdirSync(EXAMPLES, { recursive: true });
  try {
    writeFileSync(`${EXAMPLES}/examples.ts`, written());
    const config = { extends: "../../tsconfig.json", compilerOptions: { types: [], noUnusedLocals: false }, include: ["examples.ts"] };
    writeFileSync(`${EXAMPLES}/tsconfig.json`, JSON.stringify(config));
    const compiler = new URL(import.meta.resolve("typescript/bin/tsc"));
    execFileSync(process.execPath, [compiler.pathname, "--project", EXAMPLES], { stdio: ["ignore", "inherit", "inherit"] });
  } finally {
    rmSync(EXAMPLES, { recursive: true });
  }
});

const engine = process.env["ONSALE_URL"];
const program = process.env["ONSALE_BIN"];
const reason = engine === undefined || program === undefined ? "skipped: ONSALE_URL and ONSALE_BIN name no engine" : false;

test("the examples run", { skip: reason }, async () => {
  const folder = `${EXAMPLES}-run`;
  mkdirSync(folder, { recursive: true });
  try {
    const token = JSON.parse(execFileSync(program!, ["token", "--user", `example-${process.pid}`, "--json"]).toString()) as { token: string };
    writeFileSync(`${folder}/examples.ts`, written());
    await build({ entryPoints: [`${folder}/examples.ts`], outfile: `${folder}/examples.mjs`, bundle: true, platform: "node", format: "esm", target: "node20", logLevel: "warning" });
    const said = execFileSync(process.execPath, [`${folder}/examples.mjs`], { env: { ...process.env, BEARER: token.token } }).toString();
    assert.match(said, /^true \d+ CNY /m, "the same admission gets the same order");
    assert.match(said, /no such order/);
    assert.match(said, /^done \d+ cancelled function$/m);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
