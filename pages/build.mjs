/**
 * Builds the pages into `dist/`: an HTML file a page, hashed scripts and styles below `assets/`, `csp.json` with the
 * content security policy of all of them, `sw.js` for the pages that open without a network. Prints the bytes of each page as they are sent, compressed.
 * The HTML of a page that a function renders is not built: its script and styles have the same names in every build.
 *
 *   node build.mjs [--out FOLDER] [--only index,sale] [--brand FILE]
 *
 * A page `x.html`, or one that a function renders, is the folder `src/x/` with `main.tsx`; a page without a folder is left out, and said so.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";

import { brandPlugin, readBrand } from "./brand.mjs";

const FOLDER = dirname(fileURLToPath(import.meta.url));
const SOURCE = join(FOLDER, "src");
const { values: options } = parseArgs({ options: {
  out: { type: "string", default: join(FOLDER, "dist") }, only: { type: "string" },
  brand: { type: "string", default: process.env.ONSALE_BRAND },
} });
/** The name and the colours of whoever sells here; none of their own without a file. */
const brand = options.brand ? readBrand(resolve(process.env.INIT_CWD ?? ".", options.brand)) : {};
/** Where the pages are put once all of them are built, and where they are built. */
const OUT = resolve(options.out);
const DIST = `${OUT}.building-${process.pid}`;
const TARGET = ["es2022", "chrome100", "firefox100", "safari16.4"];
/** Compressed bytes that pages stay below: the page alone if it loads nothing, else with all that it loads at first. */
const BUDGETS = { room: 13 * 1024, index: 70 * 1024 };

const routes = JSON.parse(readFileSync(join(FOLDER, "routes.json"), "utf8"));
const only = options.only?.split(",");
/** The pages that a function renders. */
const rendered = new Set(routes.rendered.map(({ name }) => name));
const names = [...routes.pages.map((page) => page.file), ...rendered, "404.html"].map((file) => file.replace(/\.html$/, ""))
  .filter((name) => only === undefined || only.includes(name));

/** What all bundles share. */
const OPTIONS = {
  absWorkingDir: FOLDER, bundle: true, format: "esm", target: TARGET, minify: true, jsx: "automatic",
  jsxImportSource: "preact", legalComments: "none", logLevel: "warning", charset: "utf8",
  plugins: [brandPlugin(brand)],
};

/** The title of a page until its script has set its own. */
const TITLE = brand.name?.en ?? brand.name?.zh ?? "Onsale";

const gzipped = (text) => gzipSync(text, { level: 9 }).length;
/** The sign of the pages in tabs and bookmarks. */
const ICON = readFileSync(join(FOLDER, "favicon.svg"), "utf8").trim();
const ICON_PATH = `assets/favicon-${createHash("sha256").update(ICON).digest("hex").slice(0, 8).toUpperCase()}.svg`;
const hashed = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** A page that loads its script and its styles. */
function html(name, { script, styles, preload }) {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${TITLE}</title>
<link rel="icon" type="image/svg+xml" href="/${ICON_PATH}">
${styles.map((path) => `<link rel="stylesheet" href="/${path}">\n`).join("")}${preload.map((path) => `<link rel="modulepreload" href="/${path}">\n`).join("")}<script type="module" src="/${script}"></script>
</head>
<body data-page="${name}">
<noscript><p>This page needs JavaScript. 此页面需要 JavaScript。</p></noscript>
<div id="app"></div>
</body>
</html>
`;
}

/** Every chunk that an output imports at once, itself left out. */
function imported(outputs, path, found = new Set()) {
  for (const { path: other, kind } of outputs[path].imports) {
    if (kind === "import-statement" && !found.has(other)) {
      found.add(other);
      imported(outputs, other, found);
    }
  }
  return found;
}

/**
 * A page by itself: its script holds all that it needs at first, so that few requests decide whether it works. What it
 * imports only when it is needed (signing in, a challenge) are chunks.
 */
async function buildPage(name) {
  const { metafile } = await build({
    ...OPTIONS, entryPoints: [{ in: join(SOURCE, name, "main.tsx"), out: name }],
    outdir: DIST, entryNames: "assets/[name]-[hash]", chunkNames: "assets/chunk-[hash]", assetNames: "assets/[name]-[hash]",
    splitting: true, metafile: true,
  });
  const { outputs } = metafile;
  const entry = join("src", name, "main.tsx");
  const [path, output] = Object.entries(outputs).find(([, output]) => output.entryPoint === entry);
  const inDist = (file) => relative(DIST, join(FOLDER, file));
  const preload = [...imported(outputs, path)].map(inDist);
  const styles = output.cssBundle ? [inDist(output.cssBundle)] : [];
  const text = rendered.has(name) ? "" : html(name, { script: inDist(path), styles, preload });
  if (rendered.has(name)) {
    // A chunk that imports the script by its hashed name would run it a second time.
    const importers = Object.keys(outputs).filter((file) => outputs[file].imports.some((one) => one.path === path));
    if (importers.length > 0) throw new Error(`${name}: ${importers} import its script, which has another name in the page`);
    sameName(`assets/${name}.js`, readFileSync(join(DIST, inDist(path))));
    sameName(`assets/${name}.css`, readFileSync(join(DIST, styles[0])));
  } else {
    writeFileSync(join(DIST, `${name}.html`), text);
  }
  const files = [inDist(path), ...styles, ...preload];
  const bytes = files.reduce((sum, file) => sum + gzipped(readFileSync(join(DIST, file))), gzipped(text));
  return { name, bytes, requests: files.length + 1, all: [...Object.keys(outputs).map(inDist), ICON_PATH], text };
}

/** Writes a file that has the same name in every build, as `routes.json` lists it. */
function sameName(path, bytes) {
  if (!routes.same_names.includes(path)) throw new Error(`${path} is not among the same_names of routes.json`);
  writeFileSync(join(DIST, path), bytes);
}

/** The pages that open without a network: the scope of the worker of each, and a path that the page is at. */
const OFFLINE = {
  scan: { scope: "/scan", path: "/scan" },
  tickets: { scope: "/my/tickets/", path: "/my/tickets/0" },
};

/**
 * The service worker of the pages that open without a network: it keeps such a page with all of its files, those too that
 * are imported only when they are needed. Its version changes with any of them, and with the policy that the page is kept with.
 */
async function buildWorker(rows, policies) {
  const pages = rows.filter(({ name }) => name in OFFLINE).map(({ name, all, text }) => {
    const files = all.map((file) => `/${file}`).sort();
    const version = createHash("sha256").update(JSON.stringify([files, text, policies])).digest("hex").slice(0, 16);
    return { ...OFFLINE[name], prefix: `onsale-${name}-`, files, version };
  });
  if (pages.length === 0) return;
  await build({
    ...OPTIONS, entryPoints: [join(SOURCE, "shared", "worker.ts")], outfile: join(DIST, "sw.js"), format: "iife",
    define: { KEPT_PAGES: JSON.stringify(pages) },
  });
}

/**
 * The waiting room: one file, script and styles inline. What it loads only when somebody wants to be told of the turn is a
 * file of its own, whose address is put into the script.
 */
async function buildRoom() {
  const { metafile } = await build({
    ...OPTIONS, entryPoints: [{ in: join(SOURCE, "room", "reminders.ts"), out: "reminders" }], outdir: DIST, entryNames: "assets/[name]-[hash]", metafile: true,
  });
  const [reminders] = Object.keys(metafile.outputs).map((file) => relative(DIST, join(FOLDER, file)));
  const { outputFiles } = await build({
    ...OPTIONS, entryPoints: [join(SOURCE, "room", "main.ts")], outdir: DIST, write: false,
    define: { REMINDERS: JSON.stringify(`/${reminders}`) },
  });
  const text = (ending) => outputFiles.find((file) => file.path.endsWith(ending))?.text.trim() ?? "";
  const script = text(".js").replaceAll("</script", "<\\/script");
  const style = text(".css");
  const page = readFileSync(join(SOURCE, "room", "room.html"), "utf8")
    .replace("{{title}}", () => TITLE).replace("{{icon}}", () => `data:image/svg+xml,${ICON.replaceAll('"', "'").replace(/[%#<>]/g, encodeURIComponent)}`).replace("{{style}}", () => style).replace("{{script}}", () => script);
  writeFileSync(join(DIST, "room.html"), page);
  return { row: { name: "room", bytes: gzipped(page), requests: 1 }, script: hashed(script), style: hashed(style) };
}

/** The directives of the policy, which the function that renders pages reads too. */
const POLICY = JSON.parse(readFileSync(join(FOLDER, "policy.json"), "utf8")).policy.join("; ");

/** The policy of every page; `{connect}` is where the issuers' origins are put in, with a blank before each. */
function policy(room) {
  return POLICY.replace("{scripts}", room ? ` ${room.script}` : "").replace("{styles}", room ? ` ${room.style}` : "");
}

/** Builds everything, and puts it in its place only then: whoever serves the folder meanwhile serves the old pages. */
async function buildAll() {
  mkdirSync(DIST, { recursive: true });
  mkdirSync(join(DIST, "assets"), { recursive: true });
  writeFileSync(join(DIST, ICON_PATH), ICON);
  sameName("assets/favicon.svg", ICON);
  writeFileSync(join(DIST, "robots.txt"), readFileSync(join(FOLDER, "robots.txt")));
  const there = names.filter((name) => name !== "room" && existsSync(join(SOURCE, name, "main.tsx")));
  const rows = await Promise.all(there.map(buildPage));
  const room = names.includes("room") && existsSync(join(SOURCE, "room", "main.ts")) ? await buildRoom() : null;
  if (room) rows.push(room.row);
  await buildWorker(rows, policy(room));
  writeFileSync(join(DIST, "csp.json"), `${JSON.stringify({ policy: policy(room) }, null, 1)}\n`);
  writeFileSync(join(DIST, "routes.json"), readFileSync(join(FOLDER, "routes.json")));
  rmSync(OUT, { recursive: true, force: true });
  renameSync(DIST, OUT);
  return rows;
}

let rows;
try {
  rows = await buildAll();
} finally {
  rmSync(DIST, { recursive: true, force: true });
}
console.log("page         requests  bytes (gzip)");
for (const { name, bytes, requests } of rows) {
  const budget = BUDGETS[name];
  console.log(`${name.padEnd(12)} ${String(requests).padStart(8)}  ${String(bytes).padStart(12)}${budget ? ` of ${budget}` : ""}`);
  if (budget && bytes > budget) {
    console.error(`${name}: over its budget`);
    process.exitCode = 1;
  }
}
const missing = names.filter((name) => !rows.some((row) => row.name === name));
if (missing.length > 0) console.log(`not there yet: ${missing.join(", ")}`);
