/**
 * A replay of a published on-sale, and somebody at a browser in the midst of it: joins the waiting room, waits, chooses,
 * pays and has the tickets, while an operator looks at the board. Afterwards what the pages say is compared with what
 * the audit reads in the stores.
 *
 *   scripts/replay-in-browser [NAME] [--scale 0.1] [--accounts 60]
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { REPOSITORY, stopChromedriver } from "./lib/chromium.mjs";
import { Engine, onsaleProgram } from "./lib/engine.mjs";
import { keepPlace, placeOf } from "./lib/pages.mjs";
import { Person, texts } from "./lib/person.mjs";
import { chooseBest, hold, openTickets, payAtProvider } from "./lib/steps.mjs";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { scale: { type: "string", default: "0.1" }, accounts: { type: "string", default: "60" } },
});
const NAME = positionals[0] ?? "tixcraft-2024";
/** The longest that a place may be waited for. */
const WAIT_MS = 20 * 60_000;
/** How often the operator's board is read. */
const LOOK_MS = 5_000;
const TICKETS = 2;

const begun = performance.now();
const say = (text) => console.log(`${((performance.now() - begun) / 1000).toFixed(1).padStart(7)} s  ${text}`);

/** The replay: what it tells of itself, how it is ended, and its report. */
function startReplay() {
  const program = onsaleProgram();
  const args = ["replay", NAME, "--scale", options.scale, "--people", "mixed", "--admission", "room", "--stay", "--json", "--pages", join(REPOSITORY, "pages/dist")];
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], cwd: REPOSITORY });
  let [report, said] = ["", ""];
  child.stdout.on("data", (chunk) => { report += chunk; });
  const lines = [];
  const waiting = [];
  child.stderr.on("data", (chunk) => {
    said += chunk;
    for (let end = said.indexOf("\n"); end >= 0; end = said.indexOf("\n")) {
      const line = said.slice(0, end);
      said = said.slice(end + 1);
      if (line.startsWith("{")) lines.push(JSON.parse(line));
      else if (line) console.error(line);
    }
    waiting.splice(0).forEach((look) => look());
  });
  const ended = new Promise((resolve) => child.once("close", (code) => { resolve(code); waiting.splice(0).forEach((look) => look()); }));
  const told = async (audited) => {
    for (;;) {
      const line = lines.find((one) => one.audited === audited);
      if (line) return line;
      if (child.exitCode !== null) throw new Error(`the replay ended with ${child.exitCode}`);
      await new Promise((look) => waiting.push(look));
    }
  };
  const stop = async () => {
    child.stdin.end();
    const code = await ended;
    return { code, report: report ? JSON.parse(report) : null };
  };
  return { program, told, stop };
}

/** Joins as many accounts as wanted, and gives the one whose place comes first, as its browser keeps it. */
async function bestPlace(engine, sale) {
  const join = (account) => engine.do(`/sales/${sale.sale}/places`, { body: {}, as: account });
  const names = Array.from({ length: Number(options.accounts) }, (_, index) => `spectator-${index + 1}`);
  for (const name of names) await join(name);
  say(`${names.length} accounts have joined`);
  const deadline = Date.now() + WAIT_MS;
  for (;;) {
    const room = await engine.do(`/sales/${sale.sale}/room`);
    if (room.groups[0].seed !== undefined) break;
    if (Date.now() > deadline) throw new Error("the room is not drawn");
    await new Promise((later) => setTimeout(later, 500));
  }
  let best;
  for (const name of names) {
    // A process may learn of the draw a second later than the document that another has made.
    let place = await join(name);
    while (place.place === undefined && Date.now() < deadline) {
      await new Promise((later) => setTimeout(later, 200));
      place = await join(name);
    }
    if (place.place === undefined) throw new Error(`${name} has no place: ${JSON.stringify(place)}`);
    if (best === undefined || place.place < best.place.place) best = { name, place };
  }
  const { name, place } = best;
  say(`${name} has place ${place.place}, the first of them`);
  return { name, kept: placeOf(sale.sale, place, { title: sale.title, tiers: sale.tiers.map((tier) => tier.name) }) };
}

/** The figures that the board shows, as numbers; null where it shows none yet. */
function shown(operator) {
  return operator.browser.executeScript(() => Object.fromEntries(["sold", "available", "revenue"].map((name) => {
    const text = document.querySelector(`.figure.${name} .value`)?.innerText.replace(/[^\d.]/g, "");
    return [name, text ? Number(text) : null];
  })));
}

/** Looks at the board until it is told to stop: what is sold never becomes less, for nobody refunds. */
async function watch(operator, isOver) {
  let [looks, highest] = [0, 0];
  while (!isOver()) {
    const { sold } = await shown(operator);
    if (sold !== null) {
      if (sold < highest) throw new Error(`the board showed ${highest} sold, and then ${sold}`);
      highest = sold;
      looks += 1;
    }
    await new Promise((later) => setTimeout(later, LOOK_MS));
  }
  return looks;
}

/** The whole way of a buyer. */
async function goTheWholeWay(person, sale, kept) {
  await person.go("/signed-in");
  await keepPlace(person.browser, kept);
  await person.haveSession("buyers");
  await person.go(`/s/${sale}/room`);
  const deadline = Date.now() + WAIT_MS;
  while ((await person.path()) !== `/s/${sale}/seats`) {
    if (Date.now() > deadline) throw new Error(`still waiting: ${await person.text()}`);
    await person.pressIfThere(texts("room", person.language)("due.go"));
    await new Promise((later) => setTimeout(later, 500));
  }
  say("it is their turn");
  await chooseBest(person, undefined, TICKETS);
  const order = await hold(person);
  say(`holds ${TICKETS} seats: order ${order}`);
  await payAtProvider(person);
  await openTickets(person, order);
  const shown = () => person.browser.executeScript(() => document.querySelectorAll("main .ticket").length);
  await person.wait(async () => (await shown()) === TICKETS, async () => `the page shows ${await shown()} tickets`);
  say("has paid, and sees the tickets");
}

const replay = startReplay();
let isOver = false;
const people = [];
try {
  const { url, sale, data_dir: data } = await replay.told(false);
  say(`${url}/s/${sale}`);
  const engine = new Engine({ url, gateway: url, data, program: replay.program });
  const file = await engine.do(`/sales/${sale}`);
  const { name, kept } = await bestPlace(engine, file);
  const person = await Person.open(engine, { name });
  const operator = await Person.open(engine, { name: "operator" });
  people.push(person, operator);
  await operator.haveSession("operators");
  await operator.go(`/operator?sale=${sale}`);
  await operator.see(file.title.slice(0, 20));
  const watched = watch(operator, () => isOver);
  watched.catch(() => {});
  await goTheWholeWay(person, sale, kept);
  await Promise.race([replay.told(true), watched]);
  say("the replay is audited");
  isOver = true;
  const looks = await watched;
  await operator.go(`/operator?sale=${sale}`);
  const figures = await operator.wait(async () => {
    const now = await shown(operator);
    return Object.values(now).includes(null) ? null : now;
  }, "the board shows no figures");
  for (const one of people.splice(0)) await one.finish();
  const { code, report } = await replay.stop();
  const sold = report.audit.sold.filter((one) => one.sale === sale);
  const sum = (name) => sold.reduce((all, one) => all + one[name], 0);
  const audited = { sold: sum("tickets"), available: report.tickets - sum("tickets"), revenue: sum("revenue_minor") / 100 };
  console.log(`\n${report.rush.load.arrivals} people for ${report.tickets} tickets; audit ${report.audit.clean ? "clean" : "NOT clean"}; the board was read ${looks} times`);
  console.table({ "the pages show": figures, "the audit reads": audited });
  if (Object.keys(audited).some((name) => figures[name] !== audited[name])) throw new Error("the pages do not show what the audit reads");
  if (code !== 0) throw new Error(`the replay ended with ${code}`);
  console.log("the same");
} catch (error) {
  console.error(error);
  process.exitCode = 1;
  isOver = true;
  for (const one of people) await one.finish().catch(() => {});
  await replay.stop();
} finally {
  await stopChromedriver();
}
