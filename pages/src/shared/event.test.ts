import assert from "node:assert/strict";
import { test } from "node:test";

import {
  besideText, hasLeft, instantOf, journeyText, localDay, mapLink, maskedName, safeLink, shortWhenText, stopOptionText, stopTime, textOf, whenText, whereText, zoneText, type Timetable,
} from "./event.ts";

const VIENNA = "Europe/Vienna";
const START = "2026-11-21T19:00:00.000Z";

test("a time is that of the venue's clocks, and its zone is named", () => {
  assert.equal(whenText(START, VIENNA, "en"), "Saturday 21 November 2026, 20:00 (Vienna time, CET)");
  assert.equal(whenText(START, VIENNA, "zh"), "2026年11月21日星期六 20:00（中欧标准时间，GMT+1）");
  assert.equal(shortWhenText(START, VIENNA, "en"), "Sat 21 Nov 2026, 20:00");
  assert.equal(whenText(START, "Asia/Shanghai", "en"), "Sunday 22 November 2026, 03:00 (Shanghai time, GMT+8)");
  assert.equal(zoneText(START, "America/Argentina/Buenos_Aires", "en"), "Buenos Aires time, GMT-3");
  for (const zone of ["UTC", "Etc/UTC", "GMT", null, undefined, ""]) assert.equal(zoneText(START, zone, "en"), "UTC");
  for (const none of [null, undefined, "", "soon"]) assert.equal(whenText(none, VIENNA), null);
});

test("a zone that the browser does not know is UTC, and that is said", () => {
  assert.equal(whenText(START, "Mars/Olympus", "en"), "Saturday 21 November 2026, 19:00 (UTC; this browser does not know the time zone Mars/Olympus)");
  assert.match(shortWhenText(START, "Mars/Olympus", "en") ?? "", /19:00 \(UTC; .*Mars\/Olympus\)/);
  assert.equal(localDay("2026-11-21T23:30:00Z", "Mars/Olympus"), "2026-11-21");
});

test("doors and ends are times beside the beginning, with the day and the zone where these are others", () => {
  assert.equal(besideText("2026-11-21T17:30:00Z", START, VIENNA, "en"), "18:30");
  assert.equal(besideText("2026-11-22T01:00:00Z", START, VIENNA, "en"), "Sunday 22 November 2026, 02:00");
  assert.equal(besideText("2026-11-21T17:30:00Z", null, VIENNA, "en"), "Saturday 21 November 2026, 18:30 (Vienna time, CET)");
  // The clocks are set back at 03:00 in the night to 25 October: 02:30 comes twice.
  assert.equal(besideText("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", VIENNA, "en"), "Sunday 25 October 2026, 02:30 (Vienna time, CEST)");
  assert.equal(whenText("2026-10-25T01:30:00Z", VIENNA, "en"), "Sunday 25 October 2026, 02:30 (Vienna time, CET)");
});

test("the day is that of the venue, on both sides of the date line", () => {
  assert.equal(localDay("2026-11-21T10:30:00Z", "Pacific/Kiritimati"), "2026-11-22");
  assert.equal(localDay("2026-11-21T10:30:00Z", "Pacific/Pago_Pago"), "2026-11-20");
  assert.equal(localDay("2026-12-31T12:00:00Z", "Pacific/Auckland"), "2027-01-01");
  assert.equal(localDay("soon", VIENNA), null);
  assert.equal(mapLink({ latitude: -16.79, longitude: 180 }), "https://www.openstreetmap.org/?mlat=-16.79&mlon=180#map=17/-16.79/180");
  assert.equal(mapLink({ latitude: 48.2300001, longitude: -180 }), "https://www.openstreetmap.org/?mlat=48.23&mlon=-180#map=17/48.23/-180");
  for (const wrong of [{}, { latitude: 1 }, { latitude: 91, longitude: 0 }, { latitude: 0, longitude: 180.1 }, { latitude: Number.NaN, longitude: 0 }, { latitude: 0.0000001, longitude: null }]) assert.equal(mapLink(wrong), null);
});

test("where it is, as far as that is known", () => {
  const venue = { name: "Lakeside Stadium", city: "Vienna", country: "AT" };
  assert.equal(whereText(venue), "Lakeside Stadium, Vienna");
  assert.equal(whereText(venue, true, "en"), "Lakeside Stadium, Vienna, Austria");
  assert.equal(whereText(venue, true, "zh"), "Lakeside Stadium，Vienna，奥地利");
  assert.equal(whereText({ name: "Club", city: null }, true), "Club");
  assert.equal(whereText({ name: "Club", country: "QX" }, true, "en"), "Club, QX");
  assert.equal(whereText(null), null);
  assert.equal(whereText({ name: "{two}", city: "{one}" }), "{two}, {one}");
});

test("a text is in the page's language, else in English, else in the first", () => {
  assert.equal(textOf("plain", "zh"), "plain");
  assert.equal(textOf({ en: "E", zh: "中" }, "zh"), "中");
  assert.equal(textOf({ "zh-Hant": "繁", "zh-Hans": "简" }, "zh"), "简");
  assert.equal(textOf({ "zh-TW": "繁", en: "E" }, "zh"), "繁");
  assert.equal(textOf({ de: "D", "en-US": "E" }, "zh"), "E");
  assert.equal(textOf({ de: "D", fr: "F" }, "en"), "D");
  for (const none of [null, undefined, "", {}]) assert.equal(textOf(none), null);
});

test("only what is safe to follow is a link", () => {
  assert.equal(safeLink("https://example.org/a b"), "https://example.org/a%20b");
  for (const wrong of ["http://example.org", "javascript:alert(1)", "data:text/html,x", "//example.org", "/x", "", null, 7, "https://user:word@example.org/"]) assert.equal(safeLink(wrong), null, String(wrong));
});

const NIGHT: Timetable = {
  runs_on: "2026-10-24", event: { time_zone: VIENNA },
  stops: [
    { stop: "A", name: "Wien", departs: "20:40" }, { stop: "B", name: "Linz", arrives: "22:05", departs: "22:10" },
    { stop: "C", name: "Zürich", arrives: "30:20" }, { stop: "D", name: "London", arrives: "33:05", time_zone: "Europe/London" },
  ],
};

test("a journey has the day of its departure, and of its arrival if that is another", () => {
  assert.deepEqual(journeyText(NIGHT, "A", "B", "full", "en"), { departs: "Saturday 24 October 2026, 20:40 (Vienna time, CEST)", arrives: "22:05" });
  assert.deepEqual(journeyText(NIGHT, "A", "C", "short", "en"), { departs: "Sat 24 Oct 2026, 20:40", arrives: "Sun 25 Oct 2026, 06:20" });
  assert.deepEqual(journeyText({ stops: NIGHT.stops! }, "A", "C", "full", "en"), { departs: "20:40", arrives: "06:20" });
  assert.deepEqual(journeyText(NIGHT, "C", "B", "full", "en"), { departs: null, arrives: "Saturday 24 October 2026, 22:05 (Vienna time, CEST)" });
  assert.deepEqual(journeyText({}, "A", "B"), { departs: null, arrives: null });
});

test("each stop has its own clock", () => {
  assert.deepEqual(journeyText(NIGHT, "A", "D", "full", "en"), {
    departs: "Saturday 24 October 2026, 20:40 (Vienna time, CEST)", arrives: "Sunday 25 October 2026, 09:05 (London time, GMT)",
  });
  const at = (stop: string, which: "arrives" | "departs") => new Date(instantOf(stopTime(NIGHT, stop, which)!)!).toISOString();
  assert.equal(at("A", "departs"), "2026-10-24T18:40:00.000Z");
  // After the clocks were set back.
  assert.equal(at("C", "arrives"), "2026-10-25T05:20:00.000Z");
  assert.equal(at("D", "arrives"), "2026-10-25T09:05:00.000Z");
  assert.equal(instantOf({ day: "2026-03-29", time: "02:30", zone: VIENNA }), Date.parse("2026-03-29T01:30:00Z"), "an hour that is left out is one later");
  for (const none of [{ day: null, time: "02:30", zone: VIENNA }, { day: "2026-03-29", time: "02:30", zone: null }, { day: "2026-03-29", time: "02:30", zone: "Mars/Olympus" }]) assert.equal(instantOf(none), null);
});

test("a stop is chosen by its time", () => {
  const option = (at: number, which: "arrives" | "departs") => stopOptionText(NIGHT, NIGHT.stops![at]!, which, "en");
  assert.equal(option(0, "departs"), "Wien 20:40");
  assert.equal(option(2, "arrives"), "Zürich Sun 25 Oct, 06:20");
  assert.equal(option(0, "arrives"), "Wien");
});

test("numbers of documents are masked but for their last four characters, and names are not", () => {
  assert.equal(maskedName("110101199003078888"), "••••••••••••••8888");
  assert.equal(maskedName("李伟 11010119900307888X"), "李伟 ••••••••••••••888X");
  assert.equal(maskedName("Ann Smith, E12345678"), "Ann Smith, •••••5678");
  assert.equal(maskedName("1101 0119 9003 0788 88"), "•••• •••• •••• ••88 88");
  assert.equal(maskedName("李伟110101199003078888"), "李伟••••••••••••••8888");
  for (const name of ["Ann Smith", "Bartholomew Featherstonehaugh", "Louis 14", "李伟", "", maskedName("110101199003078888")]) assert.equal(maskedName(name), name);
});

test("a train has left a stop by the clock of that stop, and where that is not known it has not", () => {
  const left = (stop: string, at: string, file: Timetable = NIGHT) => hasLeft(file, stop, Date.parse(at));
  assert.deepEqual([left("A", "2026-10-24T18:39:59Z"), left("A", "2026-10-24T18:40:00Z")], [false, true]);
  assert.deepEqual([left("B", "2026-10-24T20:09:59Z"), left("B", "2026-10-24T20:10:00Z")], [false, true], "when it leaves, not when it comes");
  const untimed = { ...NIGHT, stops: [NIGHT.stops![0]!, { stop: "X", name: "Wels" }, NIGHT.stops![1]!] };
  assert.equal(left("X", "2026-10-24T18:40:00Z", untimed), true, "left when the one before it is");
  assert.equal(left("A", "2027-01-01T00:00:00Z", { stops: NIGHT.stops! }), false);
  assert.equal(left("Y", "2027-01-01T00:00:00Z"), false);
});
