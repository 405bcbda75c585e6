/**
 * Takes a picture of a page, and prints what the page said to the console.
 *
 *   node tests/browser/shot.mjs URL out.png [--width 1280] [--height 900] [--dark] [--lang zh] [--full] [--axe]
 *     [--session buyers=TOKEN] [--session operators=TOKEN] [--wait 'css selector'] [--click 'css selector']... [--run 'script']
 */
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { By, until } from "selenium-webdriver";
import { openChromium, stopChromedriver } from "./lib/chromium.mjs";
import { setSession, violations } from "./lib/pages.mjs";

const { positionals: [url, out], values } = parseArgs({
  allowPositionals: true,
  options: {
    width: { type: "string", default: "1280" }, height: { type: "string", default: "900" }, dark: { type: "boolean" }, lang: { type: "string" },
    full: { type: "boolean" }, axe: { type: "boolean" }, session: { type: "string", multiple: true, default: [] }, wait: { type: "string" },
    click: { type: "string", multiple: true, default: [] }, run: { type: "string" }, ms: { type: "string", default: "300" },
  },
});
if (url === undefined || out === undefined) {
  console.error(readFileSync(new URL(import.meta.url), "utf8").split("*/")[0]);
  process.exit(2);
}
const address = new URL(url);
if (values.lang) address.searchParams.set("lang", values.lang);
const browser = await openChromium({ width: Number(values.width), height: Number(values.height), dark: values.dark, languages: values.lang ?? "en" });
try {
  if (values.session.length > 0) {
    await browser.get(`${address.origin}/signed-in`);
    for (const session of values.session) {
      const [role, token] = session.split(/=(.*)/s);
      await setSession(browser, token, "alice", role);
    }
  }
  await browser.get(address.href);
  if (values.wait) await browser.wait(until.elementLocated(By.css(values.wait)), 15_000);
  for (const click of values.click) {
    await browser.wait(until.elementLocated(By.css(click)), 15_000);
    await browser.findElement(By.css(click)).click();
  }
  if (values.run) console.log(JSON.stringify(await browser.executeScript(values.run)));
  await new Promise((painted) => setTimeout(painted, Number(values.ms)));
  const { data } = await browser.sendAndGetDevToolsCommand("Page.captureScreenshot", { captureBeyondViewport: values.full ?? false });
  writeFileSync(out, Buffer.from(data, "base64"));
  for (const entry of await browser.manage().logs().get("browser")) console.log(`${entry.level.name}: ${entry.message}`);
  if (values.axe) for (const line of await violations(browser)) console.log(line);
} finally {
  await browser.finish();
  await stopChromedriver();
}
