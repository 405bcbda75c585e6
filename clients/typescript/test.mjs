/** Bundles the tests (Node 20 reads no TypeScript) and runs them. */
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { build } from "esbuild";

const folder = new URL("./", import.meta.url).pathname;
rmSync(`${folder}.test`, { recursive: true, force: true });
const tests = readdirSync(`${folder}tests`).filter((name) => name.endsWith(".test.ts"));
await build({
  entryPoints: tests.map((name) => `${folder}tests/${name}`),
  outdir: `${folder}.test`, outExtension: { ".js": ".mjs" },
  bundle: true, platform: "node", format: "esm", target: "node20", packages: "external", logLevel: "warning",
});
const files = tests.map((name) => `${folder}.test/${name.replace(/\.ts$/, ".mjs")}`);
process.exit(spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit", cwd: folder }).status ?? 1);
