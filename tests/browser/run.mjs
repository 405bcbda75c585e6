/**
 * Runs the tests of the pages in a real browser: opens a browser once, starts an engine for all of the tests, runs each
 * file by `node --test`, stops the engine. Arguments are names of test files, or what else `node --test` takes.
 *
 *   node tests/browser/run.mjs --check     opens the browser and loads a page, and runs no test
 *
 * Tests that fail beside the others run once more, alone, at an engine of its own: a browser shares two processors with
 * four others and their engines, and the storefront still shows what the first try has published. What passes then is
 * told by name, with why it failed, and counts as passed; many failures are no coincidence and are not tried again.
 *
 * Where the browser does not open, the run ends with the reason and the exit code 1. No part of the run waits for ever:
 * each test, each file and the whole have a limit, which ONSALE_PATIENCE_SECONDS moves.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { checkBrowser, PATIENCE_MS, within } from "./lib/chromium.mjs";
import { shared, startEngine } from "./lib/engine.mjs";

/** How long one file may take, and all of them, in milliseconds. */
const [FILE_MS, RUN_MS] = [8 * PATIENCE_MS, 15 * PATIENCE_MS];
/** With more failures than these nothing is tried again. */
const FEW = 3;
/** How long what was started may take to end after SIGTERM, in milliseconds. */
const END_MS = 5_000;

const here = dirname(fileURLToPath(import.meta.url));
const [options, names] = [process.argv.slice(2).filter((arg) => arg.startsWith("-")), process.argv.slice(2).filter((arg) => !arg.startsWith("-"))];
const files = readdirSync(join(here, "tests")).filter((file) => file.endsWith(".test.mjs") && (names.length === 0 || names.some((name) => file.includes(name))));
const paths = files.map((file) => join(here, "tests", file));

const say = (text) => console.error(`browser: ${text}`);

/** The leader of the group of the tests, while they run. */
let leader;

/** Sends a signal to the tests and to all that they started; gives false if they are gone. */
function signalTests(signal) {
  try {
    return process.kill(-leader, signal);
  } catch {
    return false;
  }
}

/** The limit of a file, where this Node.js knows the option: it ends a file whose tests are over and that goes on. */
function fileLimit() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  return major > 21 || (major === 21 && minor >= 2) || (major === 20 && minor >= 11) ? [`--test-timeout=${FILE_MS}`] : [];
}

/** Runs `node --test`, with what it prints, and gives its exit code and the tests that passed and failed. */
async function runTests(engine, args) {
  const scratch = mkdtempSync(join(tmpdir(), "onsale-browser-"));
  const kept = join(scratch, "outcomes");
  const reporters = [`--test-reporter=${pathToFileURL(join(here, "lib/outcomes.mjs"))}`, `--test-reporter-destination=${kept}`];
  const tests = spawn(process.execPath, ["--test", ...fileLimit(), ...reporters, ...args], {
    // In a group of its own, so that nothing of it stays behind.
    stdio: "inherit", detached: true, env: { ...process.env, ...shared(engine) },
  });
  const ended = new Promise((resolve) => tests.once("exit", resolve).once("error", resolve));
  leader = tests.pid;
  try {
    const code = await within(RUN_MS, ended, "the run of the tests");
    const outcomes = readFileSync(kept, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
    return { code: Number.isInteger(code) ? code : 1, passed: outcomes.filter(({ why }) => why === undefined), failed: outcomes.filter(({ why }) => why !== undefined) };
  } catch (error) {
    say(error.message);
    return { code: 1, passed: [], failed: [] };
  } finally {
    const deadline = Date.now() + END_MS;
    signalTests("SIGTERM");
    while (signalTests(0) && Date.now() < deadline) await new Promise((later) => setTimeout(later, 100));
    signalTests("SIGKILL");
    leader = undefined;
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Runs each of these tests alone, and gives those that fail again. */
async function runAlone(engine, failed) {
  const again = [];
  for (const { name, why } of failed) {
    // The file of a test is not known here: all call lib/fixture.mjs.
    const pattern = `--test-name-pattern=/${name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")}$/`;
    const { code, passed } = await runTests(engine, ["--test-concurrency=1", pattern, "--test-reporter=dot", "--test-reporter-destination=stdout", ...paths]);
    const isPassed = code === 0 && passed.some((test) => test.name === name);
    // What scripts/lanes counts.
    say(isPassed ? `passed alone: ${name}. Beside the others: ${why}` : `failed alone too: ${name}`);
    if (!isPassed) again.push(name);
  }
  return again;
}

/** Calls `use` with an engine that is stopped afterwards. */
async function atAnEngine(use) {
  const { engine, stop } = await startEngine();
  try {
    return await use(engine);
  } finally {
    await stop();
  }
}

/** Runs the test files, and those that fail alone; gives the exit code. */
async function runFiles() {
  const { code, failed } = await atAnEngine((engine) => runTests(engine, ["--test-concurrency=2", "--test-reporter=spec", "--test-reporter-destination=stdout", ...options, ...paths]));
  if (failed.length === 0 || failed.length > FEW) return code;
  return (await atAnEngine((engine) => runAlone(engine, failed))).length === 0 ? 0 : code;
}

async function run() {
  await checkBrowser();
  if (options.includes("--check")) return 0;
  return runFiles();
}

// What was started ends with this process, also where a signal ends it.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => (leader === undefined ? process.exit(128 + constants.signals[signal]) : signalTests("SIGTERM")));
}
process.exitCode = await run().catch((error) => {
  say(error.message);
  return 1;
});
