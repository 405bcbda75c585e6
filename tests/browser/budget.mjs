/**
 * Prints what each page costs, and fails over a budget: files and their bytes compressed, milliseconds of script until it
 * is shown, and milliseconds of script of a frame of the map while 60,000 live seats are panned.
 *
 *   scripts/pages-budget [--json]
 */
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { stopChromedriver } from "./lib/chromium.mjs";
import { startEngine } from "./lib/engine.mjs";
import { Person } from "./lib/person.mjs";
import { BUYER, prepare, scenes, show } from "./lib/scenes.mjs";

const { values: options } = parseArgs({ options: { json: { type: "boolean" } } });
/** Bytes, compressed, of everything that the page loads at first. */
const BYTES = { room: 13_000, storefront: 70_000 };
/** Milliseconds of script of a frame while panning. */
const FRAME_MS = 4;
const PANS = 6;

/** Compressed bytes of a file, whether or not this server compresses. */
async function compressed(url) {
  const answer = await fetch(url, { headers: { "accept-encoding": "identity" } });
  return gzipSync(Buffer.from(await answer.arrayBuffer()), { level: 9 }).length;
}

/** What a page loads and how long its scripts run, in a browser that has nothing cached. */
async function measure(engine, scene, prepared) {
  const person = await Person.open(engine, { name: BUYER });
  try {
    await show(person, scene, prepared);
    await person.browser.sendDevToolsCommand("Network.clearBrowserCache", {});
    await person.browser.sendDevToolsCommand("Performance.enable", {});
    await person.go(scene.path);
    await person.wait(() => person.browser.executeScript((css) => document.querySelector(css) !== null, scene.ready), `${scene.name} is not shown`);
    await person.wait(() => person.browser.executeScript(() => performance.getEntriesByName("first-contentful-paint").length > 0), `${scene.name} is not painted`);
    const { metrics } = await person.browser.sendAndGetDevToolsCommand("Performance.getMetrics", {});
    const of = (name) => metrics.find((metric) => metric.name === name)?.value ?? 0;
    const { urls, paintMs } = await person.browser.executeScript(() => ({
      urls: performance.getEntriesByType("resource").map((entry) => entry.name),
      paintMs: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null,
    }));
    const own = urls.filter((url) => url.startsWith(engine.url));
    const api = own.filter((url) => /\/api\/|\/config\.json/.test(url));
    const files = [...new Set([`${engine.url}${scene.path}`, ...own.filter((url) => !api.includes(url) && !url.startsWith("data:"))])];
    const bytes = (await Promise.all(files.map(compressed))).reduce((sum, one) => sum + one, 0);
    return { page: scene.name, files: files.length, requests_to_the_api: api.length, bytes, script_ms: Math.round(of("ScriptDuration") * 1000), first_paint_ms: paintMs === null ? null : Math.round(paintMs) };
  } finally {
    await person.finish();
  }
}

/** Drags the map to and fro while others buy, and gives the script milliseconds of each frame. */
async function pan(engine, prepared) {
  const person = await Person.open(engine, { name: BUYER });
  try {
    await show(person, scenes(prepared).find((scene) => scene.name === "map"), prepared);
    const host = await person.browser.findElement({ css: ".map-host" });
    await person.browser.executeScript((element) => element.scrollIntoView({ block: "center" }), host);
    // Near enough that seats are drawn one by one.
    for (let i = 0; i < 3; i++) await person.browser.findElement({ css: ".map-tools button" }).click();
    await person.browser.executeScript(() => { window.onsaleMap.frames.length = 0; });
    const tier = prepared.stadium.tiers[0].tier;
    for (let i = 0; i < PANS; i++) {
      await engine.order(prepared.stadium.sale, `pan-${i}`, { tier, best: { count: 6 } });
      const to = i % 2 === 0 ? 200 : -200;
      const actions = person.browser.actions({ bridge: true }).move({ origin: host, x: -to / 2, y: 0, duration: 0 }).press();
      for (let step = 1; step <= 20; step++) actions.move({ origin: host, x: Math.round(-to / 2 + (to * step) / 20), y: step, duration: 16 });
      await actions.release().perform();
    }
    const { frames, seats, renderer } = await person.browser.executeScript(() => ({ ...window.onsaleMap }));
    const sorted = frames.toSorted((one, other) => one - other);
    const at = (share) => Number((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN).toFixed(2));
    return { seats, renderer, frames: frames.length, median_ms: at(0.5), p95_ms: at(0.95), most_ms: at(1) };
  } finally {
    await person.finish();
  }
}

const { engine, stop } = await startEngine();
const over = [];
try {
  const prepared = await prepare(engine, { isLarge: true });
  const pages = [];
  for (const scene of scenes(prepared).filter((one) => one.file !== null)) {
    if ((await fetch(engine.url + scene.path)).status === 404) continue;
    const row = await measure(engine, scene, prepared);
    pages.push(row);
    if (row.bytes > (BYTES[row.page] ?? Infinity)) over.push(`${row.page}: ${row.bytes} bytes, the budget is ${BYTES[row.page]}`);
    if (row.page === "room" && row.files > 1) over.push(`room: ${row.files} files, it must be one`);
  }
  const map = await pan(engine, prepared);
  if (!(map.median_ms <= FRAME_MS)) over.push(`map: ${map.median_ms} ms of script a frame, the budget is ${FRAME_MS}`);
  if (map.frames < PANS * 5) over.push(`map: only ${map.frames} frames were drawn`);
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? "?"}`;
  if (options.json) console.log(JSON.stringify({ machine, pages, map, over }, null, 1));
  else {
    console.log(`On ${machine}\n`);
    console.log(`${"page".padEnd(12)}${["files", "bytes, gzip", "budget", "to the API", "script, ms", "first paint, ms"].map((name) => name.padStart(17)).join("")}`);
    for (const row of pages) console.log(`${row.page.padEnd(12)}${[row.files, row.bytes, BYTES[row.page] ?? "", row.requests_to_the_api, row.script_ms, row.first_paint_ms ?? ""].map((value) => String(value).padStart(17)).join("")}`);
    console.log(`\nmap of ${map.seats} seats (${map.renderer}), panned: ${map.frames} frames; script of a frame ${map.median_ms} ms in the median (budget ${FRAME_MS}), ${map.p95_ms} at 95 %, ${map.most_ms} at most`);
  }
} finally {
  await stopChromedriver();
  await stop();
}
for (const line of over) console.error(`over budget: ${line}`);
process.exitCode = over.length > 0 ? 1 : 0;
