/**
 * A real Chromium, driven by its driver on a free port. What was started is stopped by its own handle.
 */
import { execFile, spawn } from "node:child_process";
import { accessSync, constants, existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Builder } from "selenium-webdriver";
import { Options } from "selenium-webdriver/chrome.js";

/** The root of the repository. */
export const REPOSITORY = join(dirname(fileURLToPath(import.meta.url)), "../../..");
/** How long a condition is waited for, in milliseconds: only a failure takes that long. */
export const PATIENCE_MS = Number(process.env.ONSALE_PATIENCE_SECONDS ?? 120) * 1000;
/** How long a program may take until it is ready, in milliseconds. */
const START_MS = PATIENCE_MS / 2;
/** How long one command to a browser may take, in milliseconds: longer than the page that it waits for. */
const COMMAND_MS = PATIENCE_MS * 1.25;
/** How long a program may take to end after SIGTERM, in milliseconds. */
const END_MS = 10_000;
const TOOLS = join(REPOSITORY, ".onsale/tools");
const FONTS = join(TOOLS, "fonts/fonts.conf");
/** What \`scripts/setup\` writes once it has opened a page: a browser that fails later is to be checked again. */
const CHECKED = join(TOOLS, "chromium.checked");

/** Whether a path is a program. */
function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/**
 * The absolute path of a program, as the driver wants it: the one that the environment names (\`ONSALE_CHROMIUM\`,
 * \`ONSALE_CHROMEDRIVER\`), or the one that \`scripts/setup\` has decided on, or else the first on the PATH.
 * @param {"chromium" | "chromedriver"} name
 */
export function programPath(name, { env = process.env, tools = TOOLS } = {}) {
  const named = env[`ONSALE_${name.toUpperCase()}`];
  if (named) return resolve(named);
  const folders = (env.PATH ?? "").split(delimiter);
  const found = [tools, ...folders].map((folder) => resolve(folder, name)).find(isProgram);
  if (found === undefined) throw new Error(`there is no ${name}: scripts/setup browser installs it`);
  return found;
}

/**
 * Waits for something no longer than `ms` milliseconds.
 * @template T
 * @param {number} ms
 * @param {PromiseLike<T>} what
 * @param {string} name what it is called if it takes longer
 * @returns {Promise<T>}
 */
export function within(ms, what, name) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${name} did not end within ${ms / 1000} s`)), ms);
  });
  return Promise.race([what, late]).finally(() => clearTimeout(timer));
}

/** A port that nobody listens at, at this moment. */
export async function freePort() {
  const server = createServer();
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}

/**
 * Starts a program and waits until a line of its output matches; gives the match and a `stop`. The program ends with this
 * process, and if it is not ready in time.
 * @param {string} command
 * @param {string[]} args
 * @param {RegExp} ready
 * @param {{env?: Record<string, string>, cwd?: string, startMs?: number}} options
 */
export async function startProgram(command, args, ready, { env, cwd, startMs = START_MS } = {}) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], cwd, env: { ...process.env, ...env } });
  let said = "";
  const ended = new Promise((resolve) => child.once("exit", resolve).once("error", resolve));
  const isRunning = () => child.pid !== undefined && child.exitCode === null && child.signalCode === null;
  const terminate = () => child.kill("SIGTERM");
  process.once("exit", terminate);
  ended.then(() => process.off("exit", terminate));
  const stop = async () => {
    if (!isRunning()) return;
    terminate();
    await within(END_MS, ended, command).catch(() => child.kill("SIGKILL"));
    await ended;
  };
  const matched = new Promise((resolve, reject) => {
    const read = (chunk) => {
      if (said.length > 1_000_000) return;
      said += chunk;
      const found = ready.exec(said);
      if (found) resolve(found);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("error", reject);
    child.once("exit", (code, signal) => reject(new Error(`${command} ended with ${code ?? signal} before it was ready: ${said.slice(-2000)}`)));
  });
  try {
    return { match: await within(startMs, matched, `the start of ${command}`), stop, child };
  } catch (error) {
    await stop();
    throw error;
  }
}

let driver;

/** The driver of this process, started once: it has a Chromium for each session. */
async function chromedriver() {
  // Nothing is written to the home folder.
  const env = { XDG_CACHE_HOME: join(TOOLS, "chromium-cache"), XDG_CONFIG_HOME: join(TOOLS, "chromium-cache") };
  if (existsSync(FONTS)) env.FONTCONFIG_FILE = FONTS;
  driver ??= retried(5, Date.now() + START_MS, () => startProgram(programPath("chromedriver"), ["--port=0"], /started successfully on port (\d+)/, { env }));
  return driver;
}

/**
 * Tries again what has failed, before the deadline: the driver takes a free port of IPv6 and then the same one of IPv4,
 * which others may have.
 * @template T
 * @param {number} tries
 * @param {number} deadline
 * @param {() => Promise<T>} start
 * @returns {Promise<T>}
 */
async function retried(tries, deadline, start) {
  try {
    return await start();
  } catch (error) {
    if (tries <= 1 || Date.now() > deadline) throw error;
    return retried(tries - 1, deadline, start);
  }
}

/** Stops the driver, and with it what it still runs. */
export async function stopChromedriver() {
  if (driver === undefined) return;
  const started = driver;
  driver = undefined;
  // A driver that did not start has nothing to stop.
  await started.then(({ stop }) => stop(), () => {});
}

/**
 * Opens a Chromium with a profile of its own.
 * @param {{width?: number, height?: number, dark?: boolean, languages?: string, reducedMotion?: boolean, scale?: number, proxyPort?: number}} options
 * @returns {Promise<import("selenium-webdriver").WebDriver & {finish: () => Promise<void>}>}
 */
export async function openChromium({ width = 1280, height = 900, dark = false, languages = "en", reducedMotion = false, scale = 1, proxyPort } = {}) {
  const binary = programPath("chromium");
  const { match } = await chromedriver();
  const profile = mkdtempSync(join(tmpdir(), "onsale-chromium-"));
  const options = new Options();
  options.setChromeBinaryPath(binary);
  options.addArguments(
    "--headless=new", `--user-data-dir=${profile}`, "--no-first-run", "--no-default-browser-check", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--mute-audio",
    // Containers run as root, and without the kernel's namespaces there is no sandbox. Only our own pages are opened.
    "--no-sandbox",
    // WebGL without a graphics card. Pages themselves are put together without it: through it each frame of theirs
    // takes several times as long.
    "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-gpu-compositing",
    "--hide-scrollbars", `--force-device-scale-factor=${scale}`, `--window-size=${width},${height}`, `--accept-lang=${languages}`,
  );
  // A browser goes to this machine without a proxy, unless it is told not to.
  if (proxyPort !== undefined) options.addArguments(`--proxy-server=127.0.0.1:${proxyPort}`, "--proxy-bypass-list=<-loopback>");
  if (reducedMotion) options.addArguments("--force-prefers-reduced-motion");
  options.set("goog:loggingPrefs", { browser: "ALL" });
  const removeProfile = () => rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  let browser;
  try {
    const builder = new Builder().disableEnvironmentOverrides().usingServer(`http://127.0.0.1:${match[1]}`).forBrowser("chrome").setChromeOptions(options);
    browser = await within(START_MS, builder.build(), `the start of ${binary}`);
    bound(browser);
    await browser.manage().setTimeouts({ pageLoad: PATIENCE_MS, script: PATIENCE_MS });
    await browser.sendDevToolsCommand("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
    // The window has a frame that the viewport lacks: its size is set by itself, and phones are narrower than windows can be.
    await browser.sendDevToolsCommand("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: scale, mobile: width < 600 });
  } catch (error) {
    await browser?.quit().catch(() => {});
    removeProfile();
    throw error;
  }
  browser.finish = async () => {
    await browser.quit().catch(() => {});
    removeProfile();
  };
  return browser;
}

/** Bounds every command to a browser: a driver that hangs answers nothing. */
function bound(browser) {
  const execute = browser.execute.bind(browser);
  browser.execute = (command) => within(COMMAND_MS, execute(command), `the command ${command.getName()} to the browser`);
}

/** A page that only a whole browser shows: its text is made by a script, and its number by the data of ICU. */
const PAGE = `data:text/html,${encodeURIComponent(`<p></p><script>document.querySelector("p").textContent = new Intl.NumberFormat("de").format(1234.5)</script>`)}`;
const SHOWN = "1.234,5";

/** Opens a browser, loads a page and reads it; fails with the reason, also when that takes too long. Stops the driver. */
export async function checkBrowser() {
  try {
    await within(2 * START_MS, readPage(), "the look at a page");
  } catch (error) {
    if (!process.env.ONSALE_CHROMIUM) rmSync(CHECKED, { force: true });
    const lines = [`no page can be opened in a browser: ${String(error.message ?? error).trim()}`];
    for (const name of ["chromium", "chromedriver"]) lines.push(await described(name));
    throw new Error(lines.join("\n"), { cause: error });
  } finally {
    await stopChromedriver();
  }
}

async function readPage() {
  const browser = await openChromium();
  try {
    await browser.get(PAGE);
    const shown = await browser.executeScript("return document.body.innerText.trim()");
    if (shown !== SHOWN) throw new Error(`a page with the text ${SHOWN} shows ${JSON.stringify(shown)}`);
  } finally {
    await browser.finish();
  }
}

/** Which program it is, and what it prints by itself: the driver does not pass on what its browser says. */
async function described(name) {
  let path;
  try {
    path = programPath(name);
  } catch (error) {
    return error.message;
  }
  const profile = mkdtempSync(join(tmpdir(), "onsale-chromium-"));
  const args = name === "chromium" ? ["--headless=new", "--no-sandbox", `--user-data-dir=${profile}`, "--dump-dom", PAGE] : ["--version"];
  const said = await new Promise((resolve) => {
    execFile(path, args, { timeout: END_MS, killSignal: "SIGKILL" }, (error, stdout, stderr) => {
      if (stdout.includes(SHOWN)) resolve("the page, without its driver");
      // A machine without a desktop has no D-Bus, which every Chromium complains of.
      const lines = `${stdout}${stderr}`.replaceAll("\0", "").split("\n").filter((line) => line.trim() !== "" && !/ERROR:dbus/.test(line));
      resolve(lines.slice(-5).join("\n  ").slice(-1000) || String(error?.message ?? "nothing"));
    });
  });
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  return `${path} prints: ${said}`;
}
