/** What the other tests rely on finds what is planted for it. */
import assert from "node:assert/strict";
import { fixture } from "../lib/fixture.mjs";
import { hall } from "../lib/sales.mjs";

const { it, test } = fixture();

test("axe, the width and the console tell what is planted", async (t) => {
  const file = hall("planted");
  await it.engine.publish(file);
  const person = await it.person(t, { width: 320, height: 640 });
  await person.go(`/s/${file.sale}`);
  await person.see(file.title);
  await person.accessible("as it is");
  await person.fits();
  assert.deepEqual(await person.complaints(), []);
  // A column as narrow as a letter, in a table that is no wider than the window.
  for (const text of ["Remaining", "还可购买"]) {
    await person.browser.executeScript((words) => {
      const table = Object.assign(document.createElement("table"), { id: "narrow" });
      table.insertRow().insertCell().textContent = words;
      table.style.cssText = "width: 1rem; table-layout: fixed; overflow-wrap: anywhere";
      document.querySelector("main").append(table);
    }, text);
    await assert.rejects(person.fits(), /words are broken/, text);
    await person.browser.executeScript(() => document.querySelector("#narrow").remove());
  }
  await person.browser.executeScript(() => {
    const image = document.createElement("img");
    image.style.width = "900px";
    image.style.maxWidth = "none";
    document.querySelector("main").append(image);
  });
  await assert.rejects(person.accessible("planted"), /image-alt/);
  await assert.rejects(person.fits(), /wide/);
  // A script that was set as markup: the policy of the pages refuses it even then.
  await assert.rejects(person.browser.executeScript(() => { document.querySelector("main").innerHTML = "<img src=x onerror='window.hacked=1'>"; }), /TrustedHTML/);
  await person.browser.executeScript(() => { document.querySelector("main").setAttribute("onclick", "window.hacked=1"); document.querySelector("main").click(); }).catch(() => {});
  assert.notDeepEqual(await person.complaints(), []);
  assert.equal(await person.browser.executeScript("return window.hacked"), null);
});

test("a wrong clock is wrong, and without a network there is none", async (t) => {
  const person = await it.person(t);
  await person.wrongClock(3_600_000);
  await person.go("/");
  const now = await person.browser.executeScript("return [Date.now(), new Date().getTime()]");
  for (const ms of now) assert.ok(Math.abs(ms - Date.now() - 3_600_000) < 120_000);
  await person.offline(true);
  const reach = () => person.browser.executeAsyncScript((done) => fetch("/config.json", { cache: "no-store" }).then(() => done(true), () => done(false)));
  assert.equal(await reach(), false);
  await person.offline(false);
  assert.equal(await reach(), true);
});
