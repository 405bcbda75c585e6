/**
 * Draws the pictures of the sample sales: each scene on a canvas, as a JPEG of at most 110 kB.
 *
 *   scripts/sample-pictures [NAME...] [--out sales/pictures]
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openChromium, REPOSITORY, stopChromedriver } from "./lib/chromium.mjs";

const PICTURES = join(REPOSITORY, "sales/pictures");
const SCENES = join(PICTURES, "scenes");
const MOST_BYTES = 110_000;
/** The best quality first; the first that is small enough is taken. */
const QUALITIES = [0.9, 0.87, 0.84, 0.81, 0.78, 0.75, 0.72, 0.69, 0.66, 0.63, 0.6, 0.55, 0.5];

const { values: options, positionals: names } = parseArgs({ allowPositionals: true, options: { out: { type: "string", default: PICTURES } } });
const files = readdirSync(SCENES).filter((file) => file.endsWith(".js"));
const scenes = files.map((file) => file.slice(0, -".js".length)).filter((name) => name !== "brush" && (names.length === 0 || names.includes(name)));

// A page may import modules from a server only.
const server = createServer(({ url }, reply) => {
  const file = files.find((name) => url === `/${name}`);
  if (file !== undefined) reply.setHeader("content-type", "text/javascript").end(readFileSync(join(SCENES, file)));
  else reply.setHeader("content-type", "text/html").end("<!doctype html><title>scenes</title>");
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));

/** Runs in the page. */
async function draw(name, qualities, most, done) {
  try {
    const { W, H } = await import("/brush.js");
    const { default: scene } = await import(`/${name}.js`);
    const canvas = new OffscreenCanvas(W, H);
    scene(canvas.getContext("2d"));
    for (const quality of qualities) {
      const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/jpeg", quality })).arrayBuffer());
      if (bytes.length > most) continue;
      let text = "";
      for (const byte of bytes) text += String.fromCharCode(byte);
      return done({ picture: btoa(text), quality });
    }
    done({ failure: "it is too large at each quality" });
  } catch (error) {
    done({ failure: String(error.stack ?? error) });
  }
}

const browser = await openChromium();
try {
  await browser.get(`http://127.0.0.1:${server.address().port}/`);
  await browser.manage().setTimeouts({ script: 60_000 });
  for (const name of scenes) {
    const { failure, picture, quality } = await browser.executeAsyncScript(`return (${draw})(...arguments)`, name, QUALITIES, MOST_BYTES);
    if (failure !== undefined) throw new Error(`${name}: ${failure}`);
    const bytes = Buffer.from(picture, "base64");
    const file = join(options.out, `${name}.jpg`);
    writeFileSync(file, bytes);
    console.log(`${file}: ${bytes.length} bytes at ${quality}`);
  }
} finally {
  await browser.finish();
  await stopChromedriver();
  server.close();
}
