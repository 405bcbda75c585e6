/**
 * Runs the tests of the pages in a real browser: starts an engine for all of them, runs each file by `node --test`, stops
 * the engine. Arguments are names of test files, or what else `node --test` takes.
 */
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { shared, startEngine } from "./lib/engine.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const [options, names] = [process.argv.slice(2).filter((arg) => arg.startsWith("-")), process.argv.slice(2).filter((arg) => !arg.startsWith("-"))];
const files = readdirSync(join(here, "tests")).filter((file) => file.endsWith(".test.mjs") && (names.length === 0 || names.some((name) => file.includes(name))));

const { engine, stop } = await startEngine();
const tests = spawn(process.execPath, ["--test", "--test-concurrency=2", "--test-reporter=spec", ...options, ...files.map((file) => join(here, "tests", file))], {
  stdio: "inherit", env: { ...process.env, ...shared(engine) },
});
const code = await new Promise((resolve) => tests.once("exit", resolve));
await stop();
process.exitCode = code ?? 1;
