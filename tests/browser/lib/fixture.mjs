/** What each test file begins with: the engine, and people who are gone when a test ends. */
import { after, before } from "node:test";
import { stopChromedriver } from "./chromium.mjs";
import { startEngine } from "./engine.mjs";
import { Person } from "./person.mjs";

/**
 * Starts the engine before the tests of a file, and stops everything after them.
 * @returns {{engine: import("./engine.mjs").Engine, person: (t: import("node:test").TestContext, options?: object) => Promise<Person>}}
 */
export function fixture() {
  const it = {};
  let stop = async () => {};
  before(async () => {
    const started = await startEngine();
    it.engine = started.engine;
    stop = started.stop;
  });
  after(async () => {
    await stopChromedriver();
    await stop();
  });
  it.person = async (t, options) => {
    const person = await Person.open(it.engine, options);
    t.after(() => person.finish());
    return person;
  };
  return it;
}
