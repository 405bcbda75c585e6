/** Bundles the unit tests (Node 20 reads no TypeScript) and runs them: `src/**\/*.test.ts(x)` and `tests/*.test.ts`. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const folder = dirname(fileURLToPath(import.meta.url));
// A folder for each run: two may go on at once.
const out = join(folder, ".test", String(process.pid));
const filter = process.argv[2] ?? "";
const tests = ["src", "tests"].filter((name) => existsSync(join(folder, name)))
  .flatMap((name) => readdirSync(join(folder, name), { recursive: true }).map((file) => join(folder, name, file)))
  .filter((file) => /\.test\.tsx?$/.test(file) && file.includes(filter));
await build({
  entryPoints: tests, outdir: out, outbase: folder, outExtension: { ".js": ".mjs" }, bundle: true, platform: "node",
  format: "esm", target: "node20", packages: "bundle", jsx: "automatic", jsxImportSource: "preact", logLevel: "warning",
  loader: { ".css": "empty" },
});
const files = tests.map((file) => join(out, relative(folder, file).replace(/\.tsx?$/, ".mjs")));
const { status } = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit", cwd: folder });
rmSync(out, { recursive: true, force: true });
process.exit(status ?? 1);
