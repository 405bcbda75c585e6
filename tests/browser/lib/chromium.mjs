/**
 * A real Chromium, driven by its driver on a free port. What was started is stopped by its own handle.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Builder } from "selenium-webdriver";
import { Options } from "selenium-webdriver/chrome.js";

/** The root of the repository. */
export const REPOSITORY = join(dirname(fileURLToPath(import.meta.url)), "../../..");
/** How long a condition is waited for, in milliseconds: only a failure takes that long. */
export const PATIENCE_MS = Number(process.env.ONSALE_PATIENCE_SECONDS ?? 120) * 1000;
const TOOLS = join(REPOSITORY, ".onsale/tools");
const FONTS = join(TOOLS, "fonts/fonts.conf");

/** What setup installed, or else what is on the PATH. */
function program(name) {
  const installed = join(TOOLS, name);
  return existsSync(installed) ? installed : name;
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
 * Starts a program and waits until a line of its standard output matches; gives the match and a `stop`.
 * @param {string} command
 * @param {string[]} args
 * @param {RegExp} ready
 * @param {{env?: Record<string, string>, cwd?: string}} options
 */
export async function startProgram(command, args, ready, options = {}) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], cwd: options.cwd, env: { ...process.env, ...options.env } });
  let said = "";
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
    await ended;
  };
  const match = await new Promise((resolve, reject) => {
    const read = (chunk) => {
      if (said.length > 1_000_000) return;
      said += chunk;
      const found = ready.exec(said);
      if (found) resolve(found);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`${command} ended with ${code} before it was ready: ${said.slice(-2000)}`)));
  });
  return { match, stop, child };
}

let driver;

/** The driver of this process, started once: it has a Chromium for each session. */
async function chromedriver() {
  // Nothing is written to the home folder.
  const env = { XDG_CACHE_HOME: join(TOOLS, "chromium-cache"), XDG_CONFIG_HOME: join(TOOLS, "chromium-cache") };
  if (existsSync(FONTS)) env.FONTCONFIG_FILE = FONTS;
  driver ??= retried(5, () => startProgram(program("chromedriver"), ["--port=0"], /started successfully on port (\d+)/, { env }));
  return driver;
}

/**
 * Tries again what has failed: the driver takes a free port of IPv6 and then the same one of IPv4, which others may have.
 * @template T
 * @param {number} tries
 * @param {() => Promise<T>} start
 * @returns {Promise<T>}
 */
async function retried(tries, start) {
  try {
    return await start();
  } catch (error) {
    if (tries <= 1) throw error;
    return retried(tries - 1, start);
  }
}

/** Stops the driver, and with it what it still runs. */
export async function stopChromedriver() {
  if (driver === undefined) return;
  const started = driver;
  driver = undefined;
  await (await started).stop();
}

/**
 * Opens a Chromium with a profile of its own.
 * @param {{width?: number, height?: number, dark?: boolean, languages?: string, reducedMotion?: boolean, scale?: number, proxyPort?: number}} options
 * @returns {Promise<import("selenium-webdriver").WebDriver & {finish: () => Promise<void>}>}
 */
export async function openChromium({ width = 1280, height = 900, dark = false, languages = "en", reducedMotion = false, scale = 1, proxyPort } = {}) {
  const { match } = await chromedriver();
  const profile = mkdtempSync(join(tmpdir(), "onsale-chromium-"));
  const options = new Options();
  options.setChromeBinaryPath(program("chromium"));
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
  const browser = await new Builder().disableEnvironmentOverrides().usingServer(`http://127.0.0.1:${match[1]}`).forBrowser("chrome").setChromeOptions(options).build();
  await browser.sendDevToolsCommand("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
  // The window has a frame that the viewport lacks: its size is set by itself, and phones are narrower than windows can be.
  await browser.sendDevToolsCommand("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: scale, mobile: width < 600 });
  browser.finish = async () => {
    await browser.quit().catch(() => {});
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  return browser;
}
