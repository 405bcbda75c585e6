/**
 * A team's own name and colours on the pages. The build reads them from a file (`--brand FILE`, or `ONSALE_BRAND`):
 *
 *   { "name": { "en": "Harbour Tickets", "zh": "海港票务" },
 *     "light": { "accent": "#7a1fa2", "on_accent": "#ffffff", "accent_soft": "#f3e5f8" },
 *     "dark":  { "accent": "#d9a8ee", "on_accent": "#2c0a3a", "accent_soft": "#3a1f47" } }
 *
 * Every part may be absent. Colours that people could not read are refused.
 */
import { readFileSync } from "node:fs";

/** What each colour is called in the styles of the pages, and in those of the waiting room, which are its own. */
const PROPERTIES = { accent: ["--accent", "--focus"], on_accent: ["--on-accent", "--on"], accent_soft: ["--accent-soft", "--tint"] };
/** The colours that stay, which the others are read on or beside. */
const GROUNDS = { light: { grounds: ["#fbfaf8", "#ffffff"], text: "#1c1a17" }, dark: { grounds: ["#151719", "#1e2124"], text: "#ecebe8" } };
const OWN = { light: { accent: "#0b5c6b", on_accent: "#ffffff", accent_soft: "#dff0f2" }, dark: { accent: "#6fcadb", on_accent: "#06262c", accent_soft: "#17343a" } };
/** The contrast of text that WCAG 2.2 AA wants. */
const CONTRAST = 4.5;

function luminance(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** The contrast of two colours such as `#0b5c6b`, from 1 to 21, as WCAG reckons it. */
export function contrast(one, other) {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

function defectsOf(mode, colours) {
  const { accent, on_accent, accent_soft } = { ...OWN[mode], ...colours };
  const pairs = [["on_accent on accent", on_accent, accent], ["text on accent_soft", GROUNDS[mode].text, accent_soft], ...GROUNDS[mode].grounds.map((ground) => [`accent on ${ground}`, accent, ground])];
  return pairs.filter(([, one, other]) => contrast(one, other) < CONTRAST).map(([what, one, other]) => `${mode}: ${what}: the contrast is ${contrast(one, other).toFixed(2)}, and must be ${CONTRAST}`);
}

/** Checks a brand: what is wrong with it, a line each. */
export function brandDefects(brand) {
  const unknown = Object.keys(brand).filter((key) => !["name", "light", "dark"].includes(key)).map((key) => `${key}: there is no such part`);
  const names = Object.entries(brand.name ?? {}).filter(([language, name]) => !["en", "zh"].includes(language) || typeof name !== "string" || name.trim() === "" || /[<>&]/.test(name)).map(([language]) => `name.${language}: a text in en or zh, without < > &`);
  const colours = ["light", "dark"].flatMap((mode) => {
    const wrong = Object.entries(brand[mode] ?? {}).filter(([key, colour]) => !(key in PROPERTIES) || !/^#[0-9a-f]{6}$/i.test(colour)).map(([key]) => `${mode}.${key}: one of ${Object.keys(PROPERTIES).join(", ")}, such as #0b5c6b`);
    return wrong.length > 0 ? wrong : defectsOf(mode, brand[mode] ?? {});
  });
  return [...unknown, ...names, ...colours];
}

/** The rules that go behind the pages' own. */
export function brandCss({ light = {}, dark = {} }) {
  const rules = (colours) => Object.entries(colours).flatMap(([key, colour]) => PROPERTIES[key].map((property) => `${property}: ${colour};`)).join(" ");
  return `\n:root { ${rules(light)} }\n@media (prefers-color-scheme: dark) { :root { ${rules(dark)} } }\n`;
}

/** Reads a brand. Throws with everything that is wrong with it. */
export function readBrand(file) {
  const brand = JSON.parse(readFileSync(file, "utf8"));
  const defects = brandDefects(brand);
  if (defects.length > 0) throw new Error(`${file}:\n${defects.join("\n")}`);
  return brand;
}

/** The plugin of the build that puts a brand into texts and styles as they are read. */
export function brandPlugin(brand) {
  return {
    name: "brand",
    setup(build) {
      build.onLoad({ filter: /src[\\/](shared[\\/]styles|room[\\/]room)\.css$/ }, ({ path }) => ({ contents: readFileSync(path, "utf8") + brandCss(brand), loader: "css" }));
      build.onLoad({ filter: /src[\\/]i18n[\\/]shared\.(en|zh)\.json$/ }, ({ path }) => {
        const name = brand.name?.[/\.(en|zh)\.json$/.exec(path)[1]];
        const all = JSON.parse(readFileSync(path, "utf8"));
        return { contents: JSON.stringify(name === undefined ? all : { ...all, brand: name }), loader: "json" };
      });
    },
  };
}
