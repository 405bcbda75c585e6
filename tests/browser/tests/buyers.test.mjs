/** Buyers from the storefront to the ticket, and what may happen on the way. */
import assert from "node:assert/strict";
import { Key } from "selenium-webdriver";
import { fixture } from "../lib/fixture.mjs";
import { texts } from "../lib/person.mjs";
import { evening, hall, roomHall, SCRIPT } from "../lib/sales.mjs";
import { actAtProvider, chooseBest, chooseOnMap, findSale, hold, joinRoom, like, openProvider, openTickets, payAtProvider, pressAtProvider, saying, waitForTurn } from "../lib/steps.mjs";

const { it, test } = fixture();

for (const [language, window] of [["en", {}], ["zh", { width: 360, height: 740, dark: true }]]) {
  test(`joins before the opening, waits, is served, chooses, pays, sees the ticket (${language})`, async (t) => {
    const buyer = await it.person(t, { language, name: `journey-${language}`, ...window });
    const file = roomHall(`journey-${language}`, 20);
    await it.engine.publish(file);
    await findSale(buyer, file);
    await buyer.accessible("sale, not signed in");
    await joinRoom(buyer, file.sale);
    await waitForTurn(buyer, file.sale);
    await chooseOnMap(buyer, 2);
    await buyer.accessible("seats chosen on the map");
    await buyer.fits();
    const order = await hold(buyer);
    await buyer.see(texts("checkout", language)("how-to-pay"));
    await buyer.accessible("checkout");
    await buyer.fits();
    await payAtProvider(buyer);
    await openTickets(buyer, order);
    await buyer.see(saying("tickets", language, "ticket-of", { number: "2", count: "2" }));
    await buyer.accessible("tickets");
    await buyer.fits();
    const { state, lines } = await it.engine.do(`/orders/${order}`, { as: buyer.name });
    assert.equal(state, "paid");
    assert.equal(lines.flatMap((line) => line.tickets).length, 2);
    assert.deepEqual(await buyer.complaints(), []);
  });
}

test("with 200 others buying beside, a buyer on a phone chooses, pays and sees the ticket", async (t) => {
  const [file, theirs] = [hall("beside"), hall("crowd", { limit_per_buyer: 4, tiers: [{ tier: "floor", name: "Floor", price_minor: 5000, general_admission: 400 }] })];
  await it.engine.publish(file);
  await it.engine.publish(theirs);
  const buyer = await it.person(t, { name: "beside", width: 360, height: 740 });
  await buyer.haveSession();
  const crowd = it.engine.rush(theirs.sale, 200, 10);
  await findSale(buyer, file);
  await buyer.press(texts("sale", "en")("step.choose"));
  await chooseBest(buyer, "Balcony", 3);
  const order = await hold(buyer);
  await payAtProvider(buyer);
  await openTickets(buyer, order);
  await crowd;
  const { lines } = await it.engine.do(`/orders/${order}`, { as: "beside" });
  assert.equal(lines.flatMap((line) => line.tickets).length, 3);
  const { tiers } = await it.engine.do(`/sales/${theirs.sale}/availability`);
  assert.equal(tiers[0].available, 0);
});

test("a second buyer loses a seat, is told which, and gets the nearest", async (t) => {
  const words = texts("seats", "en");
  const file = hall("lost");
  await it.engine.publish(file);
  const buyer = await it.person(t, { name: "second" });
  await buyer.go(`/s/${file.sale}/seats`);
  await buyer.haveSession();
  await buyer.go(`/s/${file.sale}/seats`);
  await chooseOnMap(buyer, 2);
  const kept = await buyer.text("main");
  const seat = /[AB]-\d-\d+/.exec(kept) ?? [];
  const taken = await it.engine.until(`/sales/${file.sale}/availability`, () => true);
  assert.ok(taken.tiers.length > 0);
  const names = await buyer.browser.executeScript((pattern) => [...document.querySelectorAll("button")].map((button) => new RegExp(pattern, "u").exec(button.getAttribute("aria-label") ?? "")?.[0]).filter(Boolean), like("seats", "en", "remove-seat").source);
  const [, section, row, number] = /Section (\w+), row (\w+), seat ([\w-]+)/.exec(names[0]) ?? assert.fail(`${names} ${seat}`);
  const name = number.includes("-") ? number : `${section}-${row}-${number}`;
  await it.engine.order(file.sale, "first", { tier: section === "C" ? "balcony" : "stalls", seats: [name] });
  await buyer.see(words("lost-title.one"));
  await buyer.accessible("a seat is lost");
  await buyer.press(like("seats", "en", "take-instead"));
  await buyer.notSee(words("lost-title.one"));
  const order = await hold(buyer);
  const { lines } = await it.engine.do(`/orders/${order}`, { as: "second" });
  assert.equal(lines.flatMap((line) => line.tickets).length, 2);
});

test("a payment that is refused or left is said in words, and another is made", async (t) => {
  const words = texts("checkout", "en");
  const file = hall("refused");
  await it.engine.publish(file);
  const buyer = await it.person(t, { name: "refused" });
  const { order } = await it.engine.order(file.sale, "refused", { tier: "stalls", best: { count: 1 } });
  await buyer.haveSession();
  await buyer.go(`/checkout/${order}?paid=1&state=paid`);
  await payAtProvider(buyer, "leave");
  await buyer.see(words("came-back"));
  await buyer.accessible("back without having paid");
  await openProvider(buyer);
  await pressAtProvider(buyer, "refuse");
  await buyer.see("Your card was declined.");
  await actAtProvider(buyer, "leave", order);
  await buyer.see(words("came-back"));
  await payAtProvider(buyer, "pay", "alipay");
  await buyer.see(words("done.paid"));
  await buyer.browser.navigate().back();
  await buyer.wait(async () => (await buyer.path()) !== "/nowhere", "");
  await buyer.go(`/checkout/${order}`);
  await buyer.see(words("done.paid"));
  assert.equal(await buyer.has(like("checkout", "en", "pay"), "button"), false);
});

for (const [language, window] of [["en", {}], ["zh", { width: 360, height: 740, dark: true }]]) {
  test(`a wallet is filled, pays an order, and says so (${language})`, async (t) => {
    const name = `purse-${language}`;
    const [words, orders] = [texts("checkout", language), texts("orders", language)];
    const file = hall(`purse-${language}`, { wallet: true, points: { per_minor: 100, points: 10, growth: 1 } });
    const topUps = hall(`top-ups-${language}`, { limit_per_buyer: 100, merchant: { merchant: "wallet" }, tiers: [{ tier: "hundred", name: "100 CNY", price_minor: 10000, general_admission: 500 }] });
    await it.engine.publish(file);
    await it.engine.publish(topUps);
    const buyer = await it.person(t, { language, name, ...window });
    await buyer.haveSession();
    // Nobody is told of a wallet who never had one.
    const { order } = await it.engine.order(file.sale, name, { tier: "stalls", best: { count: 1 } });
    await buyer.go(`/checkout/${order}`);
    await buyer.see(words("how-to-pay"));
    assert.equal(await buyer.has(like("checkout", language, "wallet.pay"), "button"), false);
    await it.engine.paidOrder(topUps.sale, name, { tier: "hundred", best: { count: 1 } });
    await buyer.go(`/checkout/${order}`);
    await buyer.see(saying("checkout", language, "wallet.short"));
    assert.equal(await buyer.has(like("checkout", language, "wallet.pay"), "button"), false);
    const { order: filled } = await it.engine.paidOrder(topUps.sale, name, { tier: "hundred", best: { count: 2 } });
    await buyer.go(`/checkout/${filled}`);
    await buyer.see(words("done.money"));
    assert.equal(await buyer.has(words("to-tickets"), "a"), false);
    await buyer.go(`/checkout/${order}`);
    await buyer.see(saying("checkout", language, "wallet.has"));
    await buyer.accessible("checkout with a wallet");
    await buyer.fits();
    await buyer.press(like("checkout", language, "wallet.pay"));
    await buyer.see(words("done.paid"));
    // Its points are given once it is settled.
    const { points } = await it.engine.until("/points", (reply) => reply.points > 0, { as: name });
    await buyer.go("/my/orders");
    await buyer.see(orders("wallet.title"));
    await buyer.see(orders("wallet.payment"));
    assert.equal(points, 1800);
    await buyer.see(orders("points.title"));
    await buyer.see(language === "en" ? "You have 1,800 points and 180 growth." : "积分 1,800，成长值 180。");
    await buyer.accessible("orders with a wallet");
    await buyer.fits();
    const { wallets } = await it.engine.do("/wallets", { as: name });
    assert.deepEqual(wallets.map(({ currency, balance_minor }) => [currency, balance_minor]), [["CNY", 12000]]);
    assert.deepEqual(await buyer.complaints(), []);
  });
}

for (const [language, window] of [["en", {}], ["zh", { width: 360, height: 740, dark: true }]]) {
  test(`a ticket is exchanged for a cheaper one at once, and for a dearer one that is paid (${language})`, async (t) => {
    const name = `swap-${language}`;
    const [words, seats] = [texts("checkout", language), texts("seats", language)];
    const yuan = (minor) => new Intl.NumberFormat(language === "zh" ? "zh-CN" : "en-GB", { style: "currency", currency: "CNY" }).format(minor / 100);
    const file = hall(name, { limit_per_buyer: 2, exchanges: { until: "2099-01-01T00:00:00.000Z", fee_minor: 500 } });
    await it.engine.publish(file);
    const { order: first, lines: [{ tickets: [given] }] } = await it.engine.paidOrder(file.sale, name, { tier: "stalls", best: { count: 1 } });
    const buyer = await it.person(t, { language, name, ...window });
    await buyer.haveSession();
    const begin = async (order) => {
      await buyer.go(`/my/orders#order-${order}`);
      await buyer.see(texts("orders", language)("exchange.choose"));
      await buyer.press(/./, "form input[type=checkbox]");
      await buyer.accessible("an exchange, chosen");
      await buyer.fits();
      await buyer.press(texts("orders", language)("exchange.start.one", { count: 1 }));
      await buyer.see(seats("exchanging.stop"));
      await buyer.accessible("seats in exchange");
      await buyer.fits();
    };
    /** Opens the dialog, and gives what it says once it can be confirmed. */
    const review = async (yes) => {
      await buyer.press(seats("review"));
      await buyer.wait(async () => (await buyer.find(seats(yes, { count: 1 }), "dialog button")).isEnabled(), "the exchange cannot be confirmed");
      assert.equal(await buyer.focused(), seats("review.no"));
      await buyer.accessible("an exchange, reviewed");
      await buyer.fits();
      return buyer.text("dialog");
    };
    /** Each of these in a text, and the parts of a list in this order, one beside the other. */
    const sees = (text, ...all) => all.forEach((part) => {
      const escaped = [part].flat().map((one) => one.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
      assert.match(text.replace(/\s+/g, " "), new RegExp(escaped.join("[ ·]*"), "u"));
    });
    /** Nothing was asked for but what is read. */
    const untouched = async () => assert.deepEqual(await buyer.browser.executeScript(() => performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname).filter((path) => /\/sales\/[^/]+\/(admissions|orders)$/.test(path))), []);
    await begin(first);
    // One for one.
    await chooseBest(buyer, "Balcony", 2);
    await buyer.press(seats("review"));
    await buyer.see(seats("fault.exchange-count.one", { count: 1 }));
    await chooseBest(buyer, "Balcony", 1);
    // The dialog can be left, and the focus comes back.
    await review("review.yes.one");
    await buyer.keys(Key.ESCAPE);
    await buyer.wait(async () => (await buyer.focused()) === seats("review"), "the focus does not come back");
    const dialog = await review("review.yes.one");
    // The names of its seats say where they are: A-5-7.
    const [section, row, seat] = given.seat.split("-");
    sees(dialog, file.title, [seats("seat.of-row", { section, row, seat }), "Stalls", yuan(18000)], [seats("tickets.one", { count: 1 }), "Balcony", seats("review.best"), yuan(9900)], seats("review.blind"),
      [seats("sums.price"), yuan(18000)], [seats("sums.fee"), `−${yuan(500)}`], [seats("sums.worth"), yuan(17500)], [seats("sums.new"), yuan(9900)],
      [seats("sums.charged"), seats("sums.nothing")], [seats("sums.back"), yuan(7600)], seats("sums.way-back", { amount: yuan(7600), provider: seats("provider.stripe") }), seats("review.pays"), seats("review.sure"));
    await untouched();
    await buyer.press(seats("review.yes.one", { count: 1 }), "dialog button");
    await buyer.see(words("done.exchanged"));
    await buyer.see(saying("checkout", language, "exchange.pays"));
    await buyer.see(words("sums.way-back", { amount: yuan(7600), provider: words("provider.stripe") }));
    sees(await buyer.text("main"), [words("sums.fee"), `−${yuan(500)}`], [words("sums.charged"), words("sums.nothing")], [words("sums.back"), yuan(7600)], words("payment.moved", { amount: yuan(9900), order: first }));
    assert.equal((await buyer.text("main")).includes(words("payment.accepted", { amount: yuan(9900), provider: words("provider.stripe") })), false);
    await buyer.accessible("checkout of an exchange that is done");
    await buyer.fits();
    const cheap = (await buyer.path()).split("/").at(-1);
    const { state, exchange } = await it.engine.do(`/orders/${cheap}`, { as: name });
    assert.deepEqual([state, exchange.order, exchange.pays], ["paid", first, true]);
    await begin(cheap);
    await chooseBest(buyer, "Stalls", 1);
    sees(await review("hold"), [seats("sums.worth"), yuan(9400)], [seats("sums.new"), yuan(18000)], [seats("sums.charged"), yuan(18000)], [seats("sums.back-after"), yuan(9400)],
      [seats("sums.difference"), yuan(8600)], seats("review.whole"), seats("review.until-paid"));
    await untouched();
    await buyer.press(seats("hold"), "dialog button");
    await buyer.see(saying("checkout", language, "exchange.whole"));
    await buyer.see(words("sums.difference"));
    await buyer.accessible("checkout of an exchange");
    await buyer.fits();
    await payAtProvider(buyer);
    await buyer.see(words("done.exchanged"));
    await it.engine.until(`/orders/${cheap}`, (order) => order.state !== "paid", { as: name });
    assert.deepEqual(await buyer.complaints(), []);
  });
}

test("a seat that is lost while its exchange is reviewed is told, and nothing is exchanged", async (t) => {
  const words = texts("seats", "en");
  const file = hall("swap-lost", { exchanges: { until: "2099-01-01T00:00:00.000Z", fee_minor: 0 } });
  await it.engine.publish(file);
  const { order } = await it.engine.paidOrder(file.sale, "swap-lost", { tier: "stalls", best: { count: 1 } });
  const buyer = await it.person(t, { name: "swap-lost" });
  await buyer.haveSession();
  await buyer.go(`/my/orders#order-${order}`);
  await buyer.see(texts("orders", "en")("exchange.choose"));
  await buyer.press(/./, "form input[type=checkbox]");
  await buyer.press(texts("orders", "en")("exchange.start.one", { count: 1 }));
  await chooseOnMap(buyer, 1);
  await buyer.press(words("review"));
  await buyer.wait(async () => (await buyer.find(/./, "dialog button", 1)).isEnabled(), "the exchange cannot be confirmed");
  // The seat that goes, and the one that comes.
  const seats = [...(await buyer.text("dialog")).matchAll(/Section (\w+), row (\w+), seat (\w+)/g)];
  assert.equal(seats.length, 2);
  const [, section, row, number] = seats[1];
  await it.engine.order(file.sale, "faster", { tier: section === "C" ? "balcony" : "stalls", seats: [`${section}-${row}-${number}`] });
  await buyer.press(/./, "dialog button", 1);
  await buyer.see(words("lost-title.one"));
  assert.equal(await buyer.has(/./, "dialog button"), false);
  const { state, lines } = await it.engine.do(`/orders/${order}`, { as: buyer.name });
  assert.deepEqual([state, lines[0].tickets[0].refund], ["paid", undefined]);
  // The one that is offered instead is reviewed too.
  await buyer.press(like("seats", "en", "take-instead"));
  await buyer.press(words("review"));
  await buyer.press(/./, "dialog button", 1);
  await buyer.at(/^\/checkout\/\d+$/);
  await buyer.see(texts("checkout", "en")("done.exchanged"));
});

test("a paid order is given back, and its ticket is void", async (t) => {
  const words = texts("orders", "en");
  const file = hall("refund", { refunds: { until: "2099-01-01T00:00:00.000Z", fee_percent: 10 } });
  await it.engine.publish(file);
  const buyer = await it.person(t, { name: "refund" });
  const { order } = await it.engine.paidOrder(file.sale, "refund", { tier: "stalls", best: { count: 2 } });
  await buyer.haveSession();
  await buyer.go("/my/orders");
  await buyer.press(words("details-give-back"));
  await buyer.accessible("an order, open");
  await buyer.press(/^Seat|seat|A-1/, "input[type=checkbox]", 0);
  await buyer.press(words("give-back.start.one", { count: 1 }));
  await buyer.see(words("give-back.sure.one", { count: 1 }));
  await buyer.accessible("sure?");
  await buyer.press(words("give-back.start.one", { count: 1 }), "[role=dialog] button, dialog button, .confirm button, button.danger");
  await buyer.see(saying("orders", "en", "give-back.done"));
  await it.engine.until(`/orders/${order}`, (document) => document.refunds?.made === 1, { as: "refund" });
  await buyer.go(`/my/tickets/${order}`);
  await buyer.see(texts("tickets", "en")("void-text.buyer"));
  await buyer.accessible("a void ticket");
});

for (const [language, window] of [["en", { width: 390, height: 780 }], ["zh", { width: 360, height: 740, dark: true }]]) {
  test(`a phone that shows a code of WeChat says what it can do, and saves the picture (${language})`, async (t) => {
    const words = texts("checkout", language);
    const file = hall("scan-me");
    await it.engine.publish(file);
    const buyer = await it.person(t, { language, name: `scan-me-${language}`, ...window });
    await buyer.browser.sendDevToolsCommand("Emulation.setTouchEmulationEnabled", { enabled: true });
    await buyer.haveSession();
    const { order } = await it.engine.order(file.sale, buyer.name, { tier: "stalls", seats: ["A-2-3"] });
    await buyer.go(`/checkout/${order}`);
    await buyer.see(texts("shared", language)("seat.of-row", { section: "A", row: "2", seat: "3" }));
    await buyer.press(new RegExp(texts("order", language)("provider.wechat")), "input[type=radio]");
    await buyer.press(like("checkout", language, "pay"), "button");
    await buyer.see(words("scan-phone", { app: words("app.wechat") }));
    await buyer.accessible("a code on a phone");
    await buyer.fits();
    await buyer.browser.executeScript(() => {
      const make = URL.createObjectURL;
      URL.createObjectURL = (blob) => {
        createImageBitmap(blob).then(({ width, height }) => { window.saved = { type: blob.type, width, height }; });
        return make.call(URL, blob);
      };
    });
    await buyer.press(words("save-picture"));
    await buyer.see(words("picture.saved", { app: words("app.wechat") }));
    const saved = await buyer.wait(() => buyer.browser.executeScript(() => window.saved), "no picture is saved");
    assert.equal(saved.type, "image/png");
    assert.ok(saved.width >= 720 && saved.width === saved.height, `${saved.width} × ${saved.height}`);
    assert.deepEqual(await buyer.complaints(), []);
  });
}

test("tickets are printed two on a sheet, none on two, and void ones not at all", async (t) => {
  const event = evening({}, { address: "Am Ufer 1, on the far side of the water behind the old mill, gate C, 1220 Wien", images: [] });
  const file = hall("paper", { title: "The Lanterns: the closing night of a tour with a long name", event, refunds: { until: "2099-01-01T00:00:00.000Z", fee_percent: 0 } });
  await it.engine.publish(file);
  const buyer = await it.person(t, { name: "paper" });
  const { order, lines: [{ tickets: [first] }] } = await it.engine.paidOrder(file.sale, "paper", { tier: "stalls", best: { count: 6 } });
  await it.engine.do(`/orders/${order}/refunds`, { body: { number: 1, tickets: [{ tier: "stalls", seat: first.seat }] }, as: "paper" });
  await buyer.haveSession();
  await buyer.go(`/my/tickets/${order}`);
  await buyer.see(texts("order", "en")("ticket.revoked"));
  await buyer.see("Am Ufer 1", ".ticket");
  await buyer.browser.sendDevToolsCommand("Emulation.setEmulatedMedia", { media: "print" });
  const cut = await buyer.browser.executeScript(() => [...document.querySelectorAll(".ticket .what")].filter((one) => one.scrollHeight > one.clientHeight + 1).length);
  assert.equal(cut, 0, "a ticket is cut");
  const { data } = await buyer.browser.sendAndGetDevToolsCommand("Page.printToPDF", { paperWidth: 8.27, paperHeight: 11.69, preferCSSPageSize: true });
  const sheets = Buffer.from(data, "base64").toString("latin1").match(/\/Type\s*\/Page\b/g) ?? [];
  assert.equal(sheets.length, 3, "five tickets");
});

test("an order of somebody else, and one that there is not, are the same", async (t) => {
  const file = hall("others");
  await it.engine.publish(file);
  const { order } = await it.engine.order(file.sale, "owner", { tier: "stalls", best: { count: 1 } });
  const buyer = await it.person(t, { name: "other" });
  await buyer.haveSession();
  for (const path of [`/checkout/${order}`, "/checkout/1234567890123"]) {
    await buyer.go(path);
    await buyer.see(texts("checkout", "en")("not-yours"));
  }
  await buyer.go(`/my/tickets/${order}`);
  await buyer.see(texts("shared", "en")("problem.not-found"));
});

test("script in titles, names of tiers and of seats is text", async (t) => {
  const tag = "<b>x</b>";
  const file = hall("script", { title: SCRIPT, tiers: [{ tier: "stalls", name: SCRIPT.slice(0, 60), price_minor: 100, sections: [{ section: tag, rows: [{ row: tag, seats: ["<i>1", "<i>2", "<i>3"] }] }] }] });
  await it.engine.publish(file);
  const buyer = await it.person(t, { name: "script" });
  await buyer.haveSession();
  for (const path of ["/", `/s/${file.sale}`, `/s/${file.sale}/seats`]) {
    await buyer.go(path);
    await buyer.see("<img src=x");
  }
  await chooseOnMap(buyer, 1);
  const order = await hold(buyer);
  await buyer.see("<i>");
  await payAtProvider(buyer);
  await openTickets(buyer, order);
  await buyer.go("/my/orders");
  await buyer.see("<i>");
  assert.equal(await buyer.browser.executeScript("return window.hacked"), null);
  assert.deepEqual(await buyer.complaints(), []);
});
