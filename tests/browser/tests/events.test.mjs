/** When, where and what: on the start page, the sale, its order and its tickets; and the pictures of an operator. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import { fixture } from "../lib/fixture.mjs";
import { texts } from "../lib/person.mjs";
import { KEEPS_FILES } from "../lib/pages.mjs";
import { evening, GREY, hall, SCRIPT } from "../lib/sales.mjs";

const { it, test } = fixture();

/** True once all pictures that are to be seen are there, in the size that was said. */
const picturesShown = (person, count) => person.wait(
  () => person.browser.executeScript((least) => {
    const all = [...document.querySelectorAll("main img.picture")];
    all.forEach((one) => one.scrollIntoView());
    return all.length >= least && all.every((one) => one.complete && one.naturalWidth > 0);
  }, count), "a picture is not shown");

const WHEN = { en: "Saturday 21 November 2026, 20:00 (Vienna time, CET)", zh: "2026年11月21日星期六 20:00（中欧标准时间，GMT+1）" };
const SHORT = { en: "Sat 21 Nov 2026, 20:00", zh: "2026年11月21日周六 20:00" };

test("without JavaScript the sale page says what, when, where and for how much, and a preview reads it", async (t) => {
  await it.engine.keepPicture(GREY);
  const file = hall("unscripted", { title: SCRIPT, event: evening() });
  await it.engine.publish(file);
  const reader = await it.person(t, { name: "unscripted", width: 320, height: 780 });
  await reader.browser.sendDevToolsCommand("Emulation.setScriptExecutionDisabled", { value: true });
  await reader.go(`/s/${file.sale}`);
  for (const text of [SCRIPT, "Saturday 21 November 2026, 20:00 (Europe/Vienna)", "2026年11月21日星期六 20:00", "Lakeside Stadium, Vienna", "Am Ufer 1", "The closing night of their tour", "Step-free", "Tickets are on sale.", "正在售票。", file.tiers[0].name]) await reader.see(text);
  const read = async (css, attribute) => reader.browser.findElement({ css }).getAttribute(attribute);
  assert.equal(await read("meta[property='og:title']", "content"), SCRIPT);
  assert.equal(await read("link[rel=canonical]", "href"), `${it.engine.url}/s/${file.sale}`);
  const picture = await fetch(await read("meta[property='og:image']", "content"));
  assert.deepEqual([picture.status, picture.headers.get("content-type")], [200, "image/jpeg"]);
  // axe is a script, and what stands for whoever has none is not laid out as soon as there is one.
  await reader.browser.sendDevToolsCommand("Emulation.setScriptExecutionDisabled", { value: false });
  await reader.browser.executeScript(() => {
    const [without, shown] = [document.querySelector("noscript"), document.createElement("div")];
    shown.append(...without.childNodes);
    without.replaceWith(shown);
  });
  await reader.see("Lakeside Stadium, Vienna");
  await reader.accessible("a sale without JavaScript");
  await reader.fits();
  assert.equal((await fetch(`${it.engine.url}/s/there-is-none`)).status, 404);
  await reader.go("/s/there-is-none");
  await reader.see(texts("sale", "en")("missing"));
});

for (const [language, window] of [["en", {}], ["zh", { width: 320, height: 780, dark: true }]]) {
  test(`an event is said with its day and its place wherever it stands (${language})`, async (t) => {
    const [index, sale, event] = ["index", "sale", "event"].map((page) => texts(page, language));
    await it.engine.keepPicture(GREY);
    const file = hall(`event-${language}`, { title: `The Lakeside Night ${language}`, event: evening({ performers: [`Band ${language}x`] }) });
    await it.engine.publish(file);
    const name = `event-${language}`;
    const { order: pending } = await it.engine.order(file.sale, name, { tier: "stalls", seats: ["A-1-1"] });
    const { order: paid } = await it.engine.paidOrder(file.sale, name, { tier: "stalls", best: { count: 2 } });
    const person = await it.person(t, { language, name, ...window });
    await person.haveSession();
    await person.before(KEEPS_FILES);

    await person.go("/");
    await person.type(index("search.title"), `band ${language}x vienna`);
    await person.see(file.title);
    await person.see(SHORT[language], ".sale");
    await person.see("Lakeside Stadium", ".sale");
    await picturesShown(person, 1);
    await person.accessible("the start page, with an event");
    await person.fits();

    await person.press(file.title, "main h3 a");
    await person.at(`/s/${file.sale}`);
    for (const text of [WHEN[language], "Lakeside Stadium", "Am Ufer 1", "18:30", { en: "Step-free", zh: "C 门" }[language], sale("terms")]) await person.see(text);
    await person.see({ en: "The last night", zh: "最后一晚" }[language], ".markdown h3");
    assert.equal(await person.browser.executeScript("return document.querySelector('.facts a').href"), "https://www.openstreetmap.org/?mlat=48.23&mlon=16.41#map=17/48.23/16.41");
    await picturesShown(person, 1);
    assert.match(await person.browser.getTitle(), new RegExp(file.title));
    await person.accessible("a sale with an event");
    await person.fits();

    await person.go(`/checkout/${pending}`);
    await person.see(WHEN[language]);
    await person.see("Lakeside Stadium");
    assert.match(await person.browser.getTitle(), new RegExp(file.title));
    await person.accessible("a checkout with an event");
    await person.fits();

    await person.go(`/my/tickets/${paid}`);
    for (const text of [file.title, WHEN[language], "18:30", "Lakeside Stadium", "Am Ufer 1"]) await person.see(text, ".ticket");
    // What is held stands above, with its day.
    await person.see(SHORT[language], ".held");
    await person.press(event("calendar"));
    const [saved] = await person.wait(async () => (await person.browser.executeScript("return window.saved"))?.slice(-1), "no file is saved").then((all) => all);
    for (const line of ["DTSTART:20261121T190000Z", "DTEND:20261121T223000Z", `SUMMARY:${file.title}`]) assert.ok(saved.split("\r\n").includes(line), saved);
    assert.match(await person.browser.getTitle(), new RegExp(file.title));
    await person.accessible("tickets of an event");
    await person.fits();
    assert.deepEqual(await person.complaints(), []);
  });
}

test("a journey has its day and hours wherever it stands, and numbers of documents are masked", async (t) => {
  const stops = [{ stop: "A", name: "Wien Hbf", departs: "20:40" }, { stop: "B", name: "Linz", arrives: "22:05", departs: "22:10" }, { stop: "C", name: "Zürich HB", arrives: "30:20" }];
  const file = hall("night", {
    title: "Nightjar 471", runs_on: "2030-11-21", event: { time_zone: "Europe/Vienna" }, stops, attendees: "required",
    tiers: [{ tier: "second", name: "Second", fares: [{ from: "A", to: "B", price_minor: 100 }, { from: "A", to: "C", price_minor: 300 }, { from: "B", to: "C", price_minor: 200 }], columns: ["A", "B", null, "C"], sections: [{ section: "01", rows: [{ row: "1", to: "9", seats: "every_column" }] }] }],
  });
  await it.engine.publish(file);
  const { order } = await it.engine.paidOrder(file.sale, "nora", { tier: "second", from: "A", to: "C", seats: ["01-1A"], attendees: ["李伟 110101199003078888"] });
  const person = await it.person(t, { name: "nora" });
  await person.haveSession();
  const [leaves, comes] = ["Thursday 21 November 2030, 20:40 (Vienna time, CET)", "Friday 22 November 2030, 06:20"];
  await person.go(`/s/${file.sale}`);
  for (const text of ["Wien Hbf", leaves, "Zürich HB", comes]) await person.see(text);
  await person.go(`/s/${file.sale}/seats`);
  await person.see("Wien Hbf 20:40", "select");
  await person.see("Zürich HB Fri 22 Nov, 06:20", "select");
  for (const path of [`/checkout/${order}`, "/my/orders", `/my/tickets/${order}`]) {
    await person.go(path);
    for (const text of [leaves, comes, "李伟 ••••••••••••••8888"]) await person.see(text);
    assert.ok(!(await person.text()).includes("110101"), path);
    await person.accessible(path);
  }
  assert.deepEqual(await person.complaints(), []);
});

test("whatever others write of an event is text", async (t) => {
  const hash = await it.engine.keepPicture(GREY);
  const link = { title: SCRIPT, url: "https://example.org/\"><script>window.hacked=1</script>" };
  const description = `# ${SCRIPT}\n\n${SCRIPT}\n\n[x](javascript:window.hacked=1) [y](https://example.org "${SCRIPT.replaceAll("\"", "'")}") ![z](https://example.org/x.png)\n\n- <svg onload=window.hacked=1>`;
  const file = hall("hostile", {
    title: SCRIPT, event: evening(
      { venue: { name: SCRIPT, city: SCRIPT, country: "AT" }, performers: [SCRIPT] },
      { address: SCRIPT, access: { en: SCRIPT }, contact: SCRIPT, description, links: [link], images: [{ sha256: hash, alt: SCRIPT, width: 8, height: 8 }] },
    ),
  });
  await it.engine.publish(file);
  const { order } = await it.engine.paidOrder(file.sale, "hostile", { tier: "stalls", best: { count: 1 } });
  const person = await it.person(t, { name: "hostile" });
  await person.haveSession();
  for (const [path, selector] of [["/", ".sale"], [`/s/${file.sale}`, ".markdown"], [`/checkout/${order}`, "main"], ["/my/orders", "main"], [`/my/tickets/${order}`, ".ticket"]]) {
    await person.go(path);
    await person.see("<script>window.hacked=1</script>", selector);
    await person.settled();
    assert.equal(await person.browser.executeScript("return window.hacked"), null, path);
    assert.equal(await person.browser.executeScript("return [...document.querySelectorAll('main script, main img:not(.picture), main [onload], main [onerror], main a[href^=\"javascript\"]')].length"), 0, path);
  }
  assert.deepEqual(await person.complaints(), []);
});

/** A PNG of one colour, with a text in it that nobody is to be sent. */
function png(width, height) {
  const chunk = (name, data) => {
    const body = Buffer.concat([Buffer.from(name), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const rows = Buffer.concat(Array.from({ length: height }, (_, y) => Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, (y * 7) % 256)])));
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", header), chunk("tEXt", Buffer.from("Comment\0taken at home")), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

/** A grey AVIF of 2 by 2 pixels. */
const AVIF = Buffer.from("AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUIAAADybWV0YQAAAAAAAAAoaGRscgAAAAAAAAAAcGljdAAAAAAAAAAAAAAAAGxpYmF2aWYAAAAADnBpdG0AAAAAAAEAAAAeaWxvYwAAAABEAAABAAEAAAABAAABGgAAAB0AAAAoaWluZgAAAAAAAQAAABppbmZlAgAAAAABAABhdjAxQ29sb3IAAAAAamlwcnAAAABLaXBjbwAAABRpc3BlAAAAAAAAAAIAAAACAAAAEHBpeGkAAAAAAwgICAAAAAxhdjFDgQ0MAAAAABNjb2xybmNseAACAAIAAYAAAAAXaXBtYQAAAAAAAAABAAEEAQKDBAAAACVtZGF0EgAKCBgANogQEAwgMg8f8D///8WfhwB8+ErK42A=", "base64");

/** The same, with another size in its header. */
function avif(width, height) {
  const file = Buffer.from(AVIF);
  const at = file.indexOf("ispe") + 8;
  file.writeUInt32BE(width, at);
  file.writeUInt32BE(height, at + 4);
  return file;
}

test("an operator's pictures are made anew in the browser, and published with the sale", async (t) => {
  const words = texts("operator", "en");
  const file = hall("pictured", { event: evening({}, { images: [{ file: "stage.png", alt: "The stage" }, { file: "logo.svg", alt: "A logo" }, { file: "small.avif", alt: "Grey" }, { file: "huge.avif", alt: "Grey" }] }) });
  const folder = mkdtempSync(join(tmpdir(), "onsale-pictures-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const at = (name, content) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const operator = await it.person(t, { name: "olga" });
  await operator.haveSession("operators");
  await operator.go("/operator?publish");
  const choose = async (id, path) => (await operator.wait(() => operator.browser.findElement({ css: `#${id}` }), `there is no ${id}`)).sendKeys(path);
  await choose("file", at("sale.json", JSON.stringify(file)));
  await operator.see(words("pictures-first"));
  await choose("pictures", [at("stage.png", png(2000, 1000)), at("logo.svg", `<svg xmlns="http://www.w3.org/2000/svg"/>`), at("small.avif", AVIF), at("huge.avif", avif(10_000, 10_000))].join("\n"));
  await operator.see("1,600 × 800");
  await operator.see(words("picture-vector"));
  await operator.see(/small\.avif 2 × 2/);
  await operator.see(`huge.avif ${words("picture-pixels")}`);
  assert.ok(!(await (await operator.find(words("publish-send", { sale: file.sale }))).isEnabled()), "a sale without its pictures is published");
  const whole = { ...file, event: { ...file.event, about: { ...file.event.about, images: [{ file: "stage.png", alt: "The stage" }] } } };
  await choose("file", at("sale2.json", JSON.stringify(whole)));
  await choose("pictures", join(folder, "stage.png"));
  await operator.see("1,600 × 800");
  await operator.see("Am Ufer 1");
  await picturesShown(operator, 1);
  await operator.accessible("a sale with a picture, before it is published");
  await operator.fits();
  await operator.press(words("publish-send", { sale: file.sale }));
  await operator.press(words("publish-send", { sale: file.sale }), "dialog button");
  await operator.see(words("publish-done", { sale: file.sale, version: "1" }));
  const { event } = await it.engine.do(`/sales/${file.sale}`);
  assert.deepEqual([event.picture.width, event.picture.height], [1600, 800]);
  const answer = await fetch(`${it.engine.gateway}/pictures/${event.picture.sha256}`);
  const bytes = Buffer.from(await answer.arrayBuffer());
  assert.equal(answer.headers.get("content-type"), "image/jpeg");
  assert.ok(bytes.length <= 256 * 1024 && !bytes.includes("taken at home"));
  const buyer = await it.person(t, {});
  await buyer.go(`/s/${file.sale}`);
  await picturesShown(buyer, 1);
  assert.equal(await buyer.browser.executeScript("return document.querySelector('img.picture').alt"), "The stage");
  assert.deepEqual([await operator.complaints(), await buyer.complaints()], [[], []]);
});
