/**
 * Somebody at a browser: reads what is visible, presses what has a name, types, and waits for what the page says.
 * Everything waits for a condition; nothing sleeps.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Key } from "selenium-webdriver";
import { openChromium, PATIENCE_MS, REPOSITORY } from "./chromium.mjs";
import { startNetwork } from "./network.mjs";
import { setSession, violations } from "./pages.mjs";

/** Milliseconds between looks at a page: six people look at once, and each look costs the processor. */
const LOOK_MS = 100;

/** What may be pressed. */
const PRESSABLE = "button, a[href], summary, input[type=submit], input[type=radio], input[type=checkbox], [role=button], [role=tab], [role=gridcell], [role=option], [role=radio], option";

/** The texts of a page in a language, by key: what the page itself shows. */
export function texts(page, language) {
  const all = Object.assign({}, ...["shared", "order", page].map((name) => read(name, language)));
  return (key, values = {}) => {
    if (all[key] === undefined) throw new Error(`the page ${page} has no text ${key}`);
    return all[key].replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
  };
}

function read(name, language) {
  try {
    return JSON.parse(readFileSync(join(REPOSITORY, `pages/src/i18n/${name}.${language}.json`), "utf8"));
  } catch {
    return {};
  }
}

/** Runs in the page: the visible element of the selector whose name is the text, or matches it. */
function findByName(selector, name, isPattern, nth) {
  const visible = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: false }) && element.getClientRects().length > 0;
  const nameOf = (element) => {
    const label = element.getAttribute("aria-label");
    if (label) return label;
    const by = element.getAttribute("aria-labelledby");
    if (by) return by.split(/\s+/).map((id) => document.getElementById(id)?.textContent ?? "").join(" ");
    if (element.labels?.length) return [...element.labels].map((one) => one.innerText).join(" ");
    return element.innerText || element.textContent || element.value || "";
  };
  const matches = (text) => (isPattern ? new RegExp(name, "iu").test(text) : text === name);
  const found = [...document.querySelectorAll(selector)].filter((element) => {
    const isInput = element instanceof HTMLInputElement;
    return (visible(element) || isInput) && matches(nameOf(element).replace(/\s+/g, " ").trim());
  });
  return found[nth] ?? null;
}

/**
 * Cells of tables, terms and facts that are narrower than a word of theirs: it goes on in the next line, if need be letter
 * by letter. Numbers and names of things may be longer than any line; Chinese breaks between any two characters, so that
 * a cell of it is too narrow with one character a line.
 */
function brokenWords() {
  const found = [];
  for (const cell of document.querySelectorAll("th, td, dt, dd")) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    const lines = (node, from, to) => {
      const range = document.createRange();
      range.setStart(node, from);
      range.setEnd(node, to);
      return new Set([...range.getClientRects()].filter(({ width }) => width > 1).map(({ top }) => Math.round(top))).size;
    };
    for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
      for (const word of node.data.matchAll(/(?<![^\s(])\p{Script=Latin}{2,14}(?![^\s.,:;!?)])/gu)) {
        if (lines(node, word.index, word.index + word[0].length) > 1) found.push(`"${word[0]}" in ${cell.outerHTML.slice(0, 120)}`);
      }
      for (const run of node.data.matchAll(/\p{Script=Han}{3,}/gu)) {
        if (lines(node, run.index, run.index + run[0].length) >= run[0].length) found.push(`"${run[0]}" in ${cell.outerHTML.slice(0, 120)}`);
      }
    }
  }
  return found.slice(0, 5);
}

/** Somebody at a browser of their own. */
export class Person {
  constructor(browser, engine, { language, name, width, network }) {
    Object.assign(this, { browser, engine, language, name, width, network });
  }

  /**
   * @param {import("./engine.mjs").Engine} engine
   * @param {{language?: "en" | "zh", name?: string, width?: number, height?: number, dark?: boolean, reducedMotion?: boolean, hasWorker?: boolean}} options
   *   `hasWorker`: the network can be taken from service workers too
   */
  static async open(engine, { language = "en", name = "alice", width = 1280, hasWorker = false, ...window } = {}) {
    const network = hasWorker ? await startNetwork() : undefined;
    try {
      const browser = await openChromium({ ...window, width, proxyPort: network?.port, languages: language === "zh" ? "zh-CN,zh" : "en" });
      return new Person(browser, engine, { language, name, width, network });
    } catch (error) {
      // A server that still listens would keep the process of the tests alive for ever.
      await network?.stop();
      throw error;
    }
  }

  /** Goes to a path of the site, in this person's language. */
  go(path) {
    const address = new URL(path, this.engine.url);
    address.searchParams.set("lang", this.language);
    return this.browser.get(address.href);
  }

  /** The window gets this size. */
  async resize(width, height) {
    this.width = width;
    await this.browser.sendDevToolsCommand("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 600 });
  }

  async path() {
    return new URL(await this.browser.getCurrentUrl()).pathname;
  }

  /** Waits until the address has this path, or matches. */
  at(path) {
    return this.wait(async () => {
      const now = await this.path();
      return path instanceof RegExp ? path.test(now) : now === path;
    }, async () => `the address is ${await this.path()}, not ${path}`);
  }

  /** Waits for a condition; what is wrong is told, with what is visible. */
  async wait(condition, wrong) {
    const deadline = Date.now() + PATIENCE_MS;
    let thrown;
    for (;;) {
      thrown = undefined;
      try {
        const value = await condition();
        if (value) return value;
      } catch (error) {
        // The page may be going away under our hands. A browser that is gone does not come back.
        thrown = error;
        if (error?.name === "NoSuchSessionError") break;
      }
      if (Date.now() > deadline) break;
      await new Promise((later) => setTimeout(later, LOOK_MS));
    }
    const what = typeof wrong === "function" ? await wrong().catch(String) : wrong;
    const [address, text] = [await this.browser.getCurrentUrl().catch(String), await this.text().catch(String)];
    throw new Error(`${what}${thrown ? ` (${thrown})` : ""}. At ${address} is visible:\n${text}`);
  }

  /** What is visible, with blanks as they are read. */
  text(selector = "body") {
    return this.browser.executeScript((css) => [...document.querySelectorAll(css)].map((element) => element.innerText).join("\n"), selector);
  }

  /** Waits until a text is visible (or announced). */
  see(text, selector = "body") {
    return this.wait(async () => {
      const all = (await this.text(selector)).replace(/\s+/g, " ");
      return text instanceof RegExp ? all.match(text) : all.includes(text.replace(/\s+/g, " "));
    }, `${text} is not to be seen`);
  }

  /** Waits until a text is not visible any more. */
  notSee(text) {
    return this.wait(async () => !(await this.text()).includes(text), `${text} is still to be seen`);
  }

  /** Waits for what has this name, and gives it. */
  find(name, selector = PRESSABLE, nth = 0) {
    const [pattern, isPattern] = name instanceof RegExp ? [name.source, true] : [name, false];
    return this.wait(() => this.browser.executeScript(findByName, selector, pattern, isPattern, nth), `nothing to press is called ${name}`);
  }

  /** Whether something has this name now. */
  async has(name, selector = PRESSABLE) {
    const [pattern, isPattern] = name instanceof RegExp ? [name.source, true] : [name, false];
    return (await this.browser.executeScript(findByName, selector, pattern, isPattern, 0)) !== null;
  }

  /** Presses what has this name, once it can be. */
  async press(name, selector = PRESSABLE, nth = 0) {
    await this.wait(async () => {
      const element = await this.find(name, selector, nth);
      if (!(await element.isEnabled())) return false;
      await this.browser.executeScript((e) => e.scrollIntoView({ block: "center", behavior: "instant" }), element);
      const target = await this.browser.executeScript((e) => (e instanceof HTMLInputElement && e.getClientRects().length === 0 ? e.labels[0] : e), element);
      await target.click();
      return true;
    }, `${name} cannot be pressed`);
  }

  /** Presses what has this name if it is there now: where the page may go on by itself. */
  async pressIfThere(name, selector = PRESSABLE) {
    const element = await this.browser.executeScript(findByName, selector, name.source ?? name, name instanceof RegExp, 0);
    await element?.click();
  }

  /** Types into the field with this label, in place of what is there. */
  async type(label, text) {
    const field = await this.find(label, "input:not([type=radio]):not([type=checkbox]), textarea, select");
    await field.sendKeys(Key.chord(Key.CONTROL, "a"), text);
  }

  /** Presses keys, wherever the focus is. */
  keys(...keys) {
    return this.browser.actions().sendKeys(...keys).perform();
  }

  /** Types in place of what is in the field that has the focus. */
  typeOver(text) {
    return this.browser.actions().keyDown(Key.CONTROL).sendKeys("a").keyUp(Key.CONTROL).sendKeys(text).perform();
  }

  /** The name of what has the focus. */
  focused() {
    return this.browser.executeScript(() => {
      const element = document.activeElement;
      return (element?.getAttribute("aria-label") ?? element?.labels?.[0]?.innerText ?? element?.innerText ?? "").replace(/\s+/g, " ").trim();
    });
  }

  /** Goes on with the tab key until what has the focus is called so. */
  async tabTo(name, atMost = 150) {
    const matches = (text) => (name instanceof RegExp ? name.test(text) : text === name);
    const passed = [];
    for (let i = 0; i < atMost; i++) {
      const now = await this.focused();
      if (matches(now)) return;
      passed.push(now);
      await this.keys(Key.TAB);
    }
    throw new Error(`the tab key does not lead to ${name}, but past ${passed.join(" | ")}`);
  }

  /** Signs in where the page is, by its button and the issuer's form. */
  async signIn(button = texts("shared", this.language)("sign-in")) {
    await this.press(button);
    await this.answerIssuer();
  }

  /** Answers the issuer's form. */
  async answerIssuer() {
    const back = new URL(this.engine.url).origin;
    // The page that is left may have a form too.
    await this.at(/\/authorize$/);
    await this.wait(() => this.browser.executeScript(() => document.querySelector("form input:not([type=hidden])") !== null && document.querySelector("form button") !== null), "there is no form of the issuer");
    await this.browser.executeScript((name) => {
      const field = document.querySelector("form input:not([type=hidden]):not([type=checkbox])");
      field.value = name;
      document.querySelectorAll("form input[type=checkbox]").forEach((box) => { box.checked = true; });
      document.querySelector("form button").click();
    }, this.name);
    await this.wait(async () => {
      const address = new URL(await this.browser.getCurrentUrl());
      return address.origin === back && !/\/(signed-in|authorize)$/.test(address.pathname);
    }, "the sign-in does not come back");
  }

  /** Signs out by the button of the page, and comes back to it from where an issuer that ends its session sends people. */
  async signOut() {
    const [shared, signedIn] = ["shared", "signed-in"].map((page) => texts(page, this.language));
    await this.press(shared("sign-out"));
    await this.wait(async () => (await this.text()).includes(shared("sign-out-goes-on")) || this.has(signedIn("out.back")), "nothing says what becomes of the issuer's session");
    if (await this.has(signedIn("out.back"))) {
      await this.press(signedIn("out.back"));
      await this.wait(async () => (await this.path()) !== "/signed-in", "the page before does not come back");
    }
  }

  /**
   * Is signed in. Buyers are without the issuer's form: a token is put where the pages keep it. Operators' routes take
   * tokens of their issuer only, so that they sign in.
   */
  async haveSession(role = "buyers") {
    if (role === "operators") {
      await this.go("/operator");
      if (await this.browser.executeScript(() => sessionStorage.getItem("onsale.session.operators") !== null)) return;
      await this.press(texts("shared", this.language)("sign-in"), "main button");
      await this.answerIssuer();
      return;
    }
    if (!(await this.browser.getCurrentUrl()).startsWith(this.engine.url)) await this.go("/signed-in");
    await setSession(this.browser, await this.engine.token(this.name), this.name);
  }

  /** Waits until nothing that is visible changes any more: two frames and no request under way. */
  async settled() {
    const look = () => this.browser.executeAsyncScript((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(`${performance.getEntriesByType("resource").length} ${document.body.innerText.replace(/\d/g, "")}`))));
    let before;
    await this.wait(async () => {
      const now = await look();
      const isSame = now === before;
      before = now;
      return isSame;
    }, "the page does not come to rest");
  }

  /** Fails if axe finds anything wrong with the page as it is; what is still being read is none yet. */
  async accessible(state) {
    await this.wait(() => this.browser.executeScript(() => document.readyState === "complete" && document.querySelector("h1") !== null), "the page is not there");
    await this.settled();
    const found = await violations(this.browser);
    if (found.length > 0) throw new Error(`axe, ${state}:\n${found.join("\n")}`);
  }

  /** Fails if the page is wider than the window, so that reading needs scrolling sideways, or if it fits only by breaking words. */
  async fits() {
    const broken = await this.browser.executeScript(brokenWords);
    if (broken.length > 0) throw new Error(`in a window of ${this.width} words are broken: ${broken.join("\n")}`);
    // Not innerWidth: a phone zooms out until everything fits.
    const width = await this.browser.executeScript(() => document.documentElement.scrollWidth);
    if (width > this.width) {
      const widest = await this.browser.executeScript((most) => [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > most).slice(0, 5).map((one) => one.outerHTML.slice(0, 120)), this.width);
      throw new Error(`the page is ${width} wide in a window of ${this.width}: ${widest.join("\n")}`);
    }
  }

  /** Takes the network away, or gives it back. */
  async offline(isOffline) {
    this.network?.cut(isOffline);
    await this.browser.sendDevToolsCommand("Network.enable", {});
    await this.browser.sendDevToolsCommand("Network.emulateNetworkConditions", { offline: isOffline, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
  }

  /** Runs a script in every page before its own. */
  before(source) {
    return this.browser.sendDevToolsCommand("Page.addScriptToEvaluateOnNewDocument", { source });
  }

  /**
   * From now on `window.heard` has what a screen reader is told, in every page: the text of a live region at each change of it,
   * also where the same text is put in again.
   */
  hear() {
    return this.before(`{
      const LIVE = "[role=status], [role=alert], [aria-live=polite], [aria-live=assertive]";
      window.heard = [];
      new MutationObserver((records) => {
        const regions = new Set();
        for (const { target, addedNodes } of records) {
          regions.add((target.nodeType === Node.ELEMENT_NODE ? target : target.parentElement)?.closest(LIVE));
          for (const node of addedNodes) if (node.nodeType === Node.ELEMENT_NODE) [node, ...node.querySelectorAll(LIVE)].forEach((one) => one.matches(LIVE) && regions.add(one));
        }
        for (const region of regions) if (region?.isConnected && region.checkVisibility() && region.textContent.trim() !== "") window.heard.push(region.textContent.trim());
      }).observe(document, { subtree: true, childList: true, characterData: true });
    }`);
  }

  /** What was heard on this page. */
  heard() {
    return this.browser.executeScript(() => window.heard);
  }

  /** Waits until a text that counts has been seen to change so often. */
  async changes(selector, times) {
    const seen = new Set();
    await this.wait(async () => seen.add(await this.text(selector)).size > times, async () => `${selector} does not count: ${[...seen].join(" | ")}`);
  }

  /** From now on the clock of the machine is wrong by so much. */
  wrongClock(byMs) {
    return this.before(`{
      const Right = Date, by = ${byMs};
      window.Date = class extends Right {
        constructor(...args) { if (args.length === 0) super(Right.now() + by); else super(...args); }
        static now() { return Right.now() + by; }
      };
    }`);
  }

  /** From now on storage is forbidden, as it is in some private windows. */
  withoutStorage() {
    return this.before(`for (const name of ["localStorage", "sessionStorage"]) {
      Object.defineProperty(window, name, { get() { throw new DOMException("denied", "SecurityError"); } });
    }`);
  }

  /** Exceptions and refusals of the content security policy since the last time; requests that failed are the tests' own doing, and drivers of graphics speak of their speed. */
  async complaints() {
    const entries = await this.browser.manage().logs().get("browser");
    return entries.map(({ message }) => message).filter((message) => !/Failed to load resource|net::ERR_|GL Driver Message/.test(message));
  }

  async finish() {
    try {
      await this.browser.finish();
    } finally {
      await this.network?.stop();
    }
  }
}
