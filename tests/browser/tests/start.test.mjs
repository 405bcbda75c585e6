/** Where no browser starts, or a program hangs, the tests end and say why. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, relative } from "node:path";
import { after, test } from "node:test";
import { programPath, REPOSITORY, startProgram } from "../lib/chromium.mjs";

/** Milliseconds in which everything here must end; it takes seconds, but the processors may be busy. */
const LIMIT_MS = 90_000;
const RUN = join(REPOSITORY, "tests/browser/run.mjs");
const folder = mkdtempSync(join(tmpdir(), "onsale-start-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** A program in a folder of its own, which does what the shell script says. */
function fake(name, script) {
  const place = mkdtempSync(join(folder, "path-"));
  const path = join(place, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return { place, path };
}

/** Runs Node.js to its end: what it printed, its exit code (`null` if it had to be ended) and the seconds it took. */
function node(args, env) {
  const all = { ...process.env, ...env };
  // Else it reports to this test's runner as a part of it.
  delete all.NODE_TEST_CONTEXT;
  const begin = Date.now();
  const child = spawn(process.execPath, args, { env: all, stdio: ["ignore", "pipe", "pipe"], timeout: LIMIT_MS, killSignal: "SIGKILL" });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => { printed += chunk; });
  return new Promise((resolve) => child.once("close", (code) => resolve({ printed, code, seconds: (Date.now() - begin) / 1000 })));
}

test("a program is an absolute path: the one of the environment, or of setup, or of the PATH", () => {
  const [first, second, decided] = ["first", "second", "decided"].map((text) => fake("chromium", `echo ${text}`));
  const none = mkdtempSync(join(folder, "none-"));
  const PATH = [none, relative(process.cwd(), first.place), second.place].join(delimiter);
  assert.equal(programPath("chromium", { env: { PATH }, tools: none }), first.path);
  assert.equal(programPath("chromium", { env: { PATH }, tools: decided.place }), decided.path);
  assert.equal(programPath("chromium", { env: { PATH, ONSALE_CHROMIUM: relative(process.cwd(), second.path) }, tools: decided.place }), second.path);
  // Neither a folder of that name nor a file that cannot be run is a program.
  mkdirSync(join(none, "chromium"));
  chmodSync(first.path, 0o644);
  assert.equal(programPath("chromium", { env: { PATH }, tools: none }), second.path);
  assert.throws(() => programPath("chromedriver", { env: { PATH }, tools: none }), /no chromedriver: scripts\/setup browser/);
});

test("a program that is not ready in time is ended", async () => {
  const { path, place } = fake("sleeper", `echo $$ > "$(dirname "$0")/pid"; exec sleep 600`);
  await assert.rejects(startProgram(path, [], /ready/, { startMs: 5000 }), /the start of .*sleeper did not end within 5 s/);
  const pid = Number(readFileSync(join(place, "pid"), "utf8"));
  assert.throws(() => process.kill(pid, 0), /ESRCH/);
  await assert.rejects(startProgram(join(folder, "nothing"), [], /ready/), /ENOENT/);
});

test("where the browser ends at once, the run of the tests ends before any test, and says what the browser prints", async () => {
  const { path } = fake("chromium", "echo 'Invalid file descriptor to ICU data received.' >&2; exit 1");
  const { printed, code, seconds } = await node([RUN], { ONSALE_CHROMIUM: path });
  assert.equal(code, 1, printed);
  assert.match(printed, /^browser: no page can be opened in a browser: session not created/m);
  assert.ok(printed.includes(`${path} prints: Invalid file descriptor to ICU data received.`), printed);
  assert.doesNotMatch(printed, /▶|✖|✔/);
  assert.ok(seconds < LIMIT_MS / 1000, `${seconds} s`);
});

test("where the driver answers nothing, the run of the tests ends", async () => {
  // It listens, and takes every connection.
  const silent = join(mkdtempSync(join(folder, "driver-")), "driver.mjs");
  writeFileSync(silent, `import { createServer } from "node:net";\ncreateServer(() => {}).listen(0, "127.0.0.1", function () { console.log("started successfully on port " + this.address().port); });\n`);
  const { path } = fake("chromedriver", `[ "$1" = --version ] && exit; exec '${process.execPath}' '${silent}'`);
  const { printed, code } = await node([RUN], { ONSALE_CHROMEDRIVER: path, ONSALE_PATIENCE_SECONDS: "8" });
  assert.equal(code, 1, printed);
  assert.match(printed, /^browser: no page can be opened in a browser: the start of .* did not end within 4 s/m);
});

test("a file of tests ends where no browser starts, also where a network was started for it", async () => {
  const { path } = fake("chromium", "exit 1");
  const engine = JSON.stringify({ url: "http://127.0.0.1:9", gateway: "http://127.0.0.1:9", data: folder, program: "false" });
  const { printed, code } = await node(["--test", "--test-reporter=spec", "--test-name-pattern=where storage is forbidden no door", join(REPOSITORY, "tests/browser/tests/scan.test.mjs")], {
    ONSALE_CHROMIUM: path, ONSALE_BROWSER_ENGINE: engine,
  });
  assert.equal(code, 1, printed);
  assert.match(printed, /session not created/);
});
