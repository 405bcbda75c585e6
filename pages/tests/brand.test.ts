import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

// @ts-expect-error: a module of the build, which is plain JavaScript
import * as brands from "../brand.mjs";

interface Brand {
  readonly [part: string]: unknown;
}
const { contrast, brandDefects } = brands as { contrast: (one: string, other: string) => number; brandDefects: (brand: Brand) => string[] };

const BRAND = { name: { en: "Harbour Tickets", zh: "海港票务" }, light: { accent: "#7a1fa2" }, dark: { accent: "#d9a8ee", on_accent: "#2c0a3a" } };

test("contrast is that of WCAG", () => {
  assert.equal(contrast("#000000", "#ffffff"), 21);
  assert.equal(contrast("#777777", "#ffffff").toFixed(2), "4.48");
});

test("a brand that could not be read, or names what there is not, is refused with why", () => {
  assert.deepEqual(brandDefects(BRAND), []);
  assert.deepEqual(brandDefects({}), [], "our own colours pass");
  for (const [bad, why] of [
    [{ light: { accent: "#cccccc" } }, /light: on_accent on accent/], [{ dark: { accent_soft: "#eeeeee" } }, /dark: text on accent_soft/], [{ light: { accent: "red" } }, /light\.accent/],
    [{ light: { ground: "#000000" } }, /light\.ground/], [{ colours: {} }, /colours/], [{ name: { en: "<b>" } }, /name\.en/], [{ name: { de: "x" } }, /name\.de/],
  ] as const) assert.match(brandDefects(bad).join("\n"), why);
});

test("the build puts the name and the colours on the pages, and the room's style is still the one that its policy names", () => {
  const folder = mkdtempSync(join(tmpdir(), "onsale-brand-"));
  try {
    writeFileSync(join(folder, "brand.json"), JSON.stringify(BRAND));
    const out = join(folder, "dist");
    const { status, stderr } = spawnSync(process.execPath, ["build.mjs", "--out", out, "--only", "index,room", "--brand", join(folder, "brand.json")], { encoding: "utf8" });
    assert.equal(status, 0, stderr);
    const assets = readdirSync(join(out, "assets")).map((name) => readFileSync(join(out, "assets", name), "utf8")).join("\n");
    const room = readFileSync(join(out, "room.html"), "utf8");
    for (const text of ["Harbour Tickets", "海港票务"]) assert.ok(assets.includes(text), text);
    for (const text of [assets, room]) assert.match(text, /--accent:\s*#7a1fa2/);
    for (const page of ["index.html", "room.html"]) assert.match(readFileSync(join(out, page), "utf8"), /<title>Harbour Tickets<\/title>/);
    const style = /<style>([\s\S]*)<\/style>/.exec(room)?.[1] ?? "";
    const { policy } = JSON.parse(readFileSync(join(out, "csp.json"), "utf8")) as { policy: string };
    assert.ok(policy.includes(createHash("sha256").update(style).digest("base64")));
    writeFileSync(join(folder, "brand.json"), JSON.stringify({ light: { accent: "#cccccc" } }));
    assert.notEqual(spawnSync(process.execPath, ["build.mjs", "--out", out, "--only", "index", "--brand", join(folder, "brand.json")]).status, 0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
