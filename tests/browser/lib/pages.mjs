/**
 * What tests do with a page: sign in, wait for what it says, ask axe, go offline, set its clock.
 */
import { AxeBuilder } from "@axe-core/webdriverjs";

/**
 * Puts a buyer's token where the pages keep that of the tab, as if a sign-in had just ended. Needs a page of the origin.
 * @param {import("selenium-webdriver").WebDriver} browser
 * @param {string} token
 */
export async function setSession(browser, token, name = "alice", role = "buyers") {
  await browser.executeScript(
    (key, value) => sessionStorage.setItem(key, value),
    `onsale.session.${role}`,
    JSON.stringify({ token, expiresAtMs: Date.now() + 86_400_000, name, scope: "openid onsale/watch onsale/operate onsale/refund onsale/scan" }),
  );
}

/**
 * A place of a waiting room as the sale's page keeps it after joining.
 * @param {string} sale
 * @param {object} joined what joining was answered
 * @param {{title?: string, tiers?: string[]}} shown what the room shows of the sale
 */
export function placeOf(sale, { place_token: token, group, index, window, nonce }, shown = {}) {
  return { sale, token, group, index, window, nonce, place: null, joinedAtMs: Date.now(), ...shown };
}

/** Puts a place where the pages keep it. Needs a page of the origin. */
export async function keepPlace(browser, kept) {
  await browser.executeScript((key, value) => localStorage.setItem(key, value), `onsale.place.${kept.sale}`, JSON.stringify(kept));
}

/** What axe finds wrong with the page as it is, a line each. */
export async function violations(browser) {
  // The other mode opens a window for each look, for frames of other origins, which no page has.
  const { violations: found } = await new AxeBuilder(browser).setLegacyMode().withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]).analyze();
  return found.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${rule.help}: ${node.target.join(" ")}: ${node.failureSummary?.split("\n").slice(1).join("; ").trim()}`));
}

/** Runs in a page before its own scripts: `window.saved` has the text of each file that the page saves. */
export const KEEPS_FILES = `{
  const make = URL.createObjectURL;
  window.saved = [];
  URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push(text)); return make.call(URL, blob); };
}`;
