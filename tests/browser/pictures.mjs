/**
 * Takes the pictures of README and docs: every page, wide in English and light, narrow in Chinese and dark.
 *
 *   scripts/pages-pictures [NAME...] [--out docs/pictures]
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { REPOSITORY, stopChromedriver } from "./lib/chromium.mjs";
import { startEngine } from "./lib/engine.mjs";
import { Person } from "./lib/person.mjs";
import { BUYER, prepare, scenes, show } from "./lib/scenes.mjs";

const { values: options, positionals: names } = parseArgs({ allowPositionals: true, options: { out: { type: "string", default: join(REPOSITORY, "docs/pictures") } } });
const WINDOWS = [
  { suffix: "en-wide", language: "en", width: 1120, height: 800 },
  { suffix: "zh-narrow-dark", language: "zh", width: 390, height: 780, dark: true },
];
const QUALITY = 72;

/** Runs in the page: whether the pictures that are to be seen have come. */
function hasPictures() {
  const isSeen = (image) => {
    const { top, bottom, width } = image.getBoundingClientRect();
    return width > 0 && bottom > 0 && top < innerHeight;
  };
  return [...document.images].filter(isSeen).every((image) => image.complete && image.naturalWidth > 0);
}

const { engine, stop } = await startEngine();
try {
  const prepared = await prepare(engine);
  mkdirSync(options.out, { recursive: true });
  for (const { suffix, ...window } of WINDOWS) {
    const person = await Person.open(engine, { ...window, name: BUYER, reducedMotion: true });
    for (const scene of scenes(prepared).filter(({ name }) => names.length === 0 || names.includes(name))) {
      if ((await fetch(engine.url + scene.path)).status === 404) {
        console.log(`${scene.name}: there is no such page`);
        continue;
      }
      // Paper is neither narrow nor dark.
      if (scene.name === "print" && window.dark) continue;
      await show(person, scene, prepared);
      await person.settled();
      await person.wait(() => person.browser.executeScript(hasPictures), `${scene.name}: a picture is missing`);
      const { data } = await person.browser.sendAndGetDevToolsCommand("Page.captureScreenshot", { format: "webp", quality: QUALITY });
      const picture = Buffer.from(data, "base64");
      const file = join(options.out, `${scene.name}-${suffix}.webp`);
      writeFileSync(file, picture);
      console.log(`${file}: ${picture.length} bytes`);
    }
    await person.finish();
  }
} finally {
  await stopChromedriver();
  await stop();
}
