/** What each test file begins with: the engine, and people who are gone when a test ends. */
import { after, before, describe, test } from "node:test";
import { PATIENCE_MS, stopChromedriver } from "./chromium.mjs";
import { startEngine } from "./engine.mjs";
import { Person } from "./person.mjs";

/** Tests of a file that run beside each other: they wait for openings, polls and payments, not for the processor. */
const BESIDE = 3;
/** How long a test may take, and what comes before and after those of a file, in milliseconds. */
const TEST_MS = 3 * PATIENCE_MS;

/**
 * Starts the engine before the tests of a file, and stops everything after them. With arguments of `onsale up` it is one of
 * the file's own.
 * @returns {{it: {engine: import("./engine.mjs").Engine, person: (t: import("node:test").TestContext, options?: object) => Promise<Person>}, test: (name: string, run: (t: import("node:test").TestContext) => Promise<void>) => void}}
 */
export function fixture(args = []) {
  const it = {
    person: async (t, options) => {
      const person = await Person.open(it.engine, options);
      t.after(() => person.finish());
      return person;
    },
  };
  const tests = [];
  // Once the file has named all its tests.
  queueMicrotask(() => describe("in Chromium", { concurrency: BESIDE }, () => {
    let stop = async () => {};
    before(async () => {
      const started = await startEngine(args);
      it.engine = started.engine;
      stop = started.stop;
    }, { timeout: TEST_MS });
    after(async () => {
      await stopChromedriver();
      await stop();
    }, { timeout: TEST_MS });
    tests.forEach(([name, run]) => test(name, { timeout: TEST_MS }, run));
  }));
  return { it, test: (name, run) => tests.push([name, run]) };
}
