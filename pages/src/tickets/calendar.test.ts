import assert from "node:assert/strict";
import { test } from "node:test";

import { calendarFile, calendarName, escaped, folded, utc, type CalendarEvent } from "./calendar.ts";

const EVENT: CalendarEvent = {
  uid: "order-42@tickets.example", title: "Evening at the Lakeside", starts_at: "2026-11-21T20:00:00+01:00", ends_at: "2026-11-21T23:30:00+01:00",
  location: "Lakeside Stadium, Vienna", description: "Doors 18:30; bring the code.", url: "https://tickets.example/my/tickets/42?lang=en", stamp: "2026-11-01T08:00:00.123Z",
};

const octets = (text: string) => new TextEncoder().encode(text).length;
/** Lines as a calendar reads them: unfolded, and each property once. */
function read(file: string): Map<string, string> {
  const lines = file.replace(/\r\n[ \t]/g, "").split("\r\n");
  assert.equal(lines.pop(), "", "the last line has its end");
  const properties = new Map<string, string>();
  for (const line of lines.filter((one) => !/^(BEGIN|END):/.test(one))) {
    const [name = "", ...value] = line.split(":");
    assert.ok(!properties.has(name), `${name} is there twice`);
    properties.set(name, value.join(":"));
  }
  return properties;
}
/** The text of a value. */
const unescaped = (value: string) => value.replace(/\\([\\;,nN])/g, (_, character: string) => (character.toLowerCase() === "n" ? "\n" : character));
/** What holds of every file. */
function wellFormed(file: string): void {
  assert.doesNotMatch(file.replace(/\r\n/g, ""), /[\r\n]/, "every line ends with CRLF");
  for (const line of file.split("\r\n")) assert.ok(octets(line) <= 75, `${octets(line)} octets: ${line}`);
  assert.deepEqual(file.match(/^(BEGIN|END):.*$/gm)?.map((line) => line.trim()), ["BEGIN:VCALENDAR", "BEGIN:VEVENT", "END:VEVENT", "END:VCALENDAR"]);
  assert.ok(!/[\ufffd\p{Surrogate}]/u.test(file));
}

test("an event is a file, letter by letter", () => {
  assert.equal(calendarFile(EVENT), [
    "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Onsale//Tickets//EN", "CALSCALE:GREGORIAN", "METHOD:PUBLISH", "BEGIN:VEVENT", "UID:order-42@tickets.example",
    "DTSTAMP:20261101T080000Z", "DTSTART:20261121T190000Z", "DTEND:20261121T223000Z", "SUMMARY:Evening at the Lakeside", "LOCATION:Lakeside Stadium\\, Vienna",
    "DESCRIPTION:Doors 18:30\\; bring the code.", "URL:https://tickets.example/my/tickets/42?lang=en", "END:VEVENT", "END:VCALENDAR", "",
  ].join("\r\n"));
});

test("what is not known is left out", () => {
  const file = calendarFile({ uid: "u", title: "T", starts_at: "2026-01-01T00:00:00Z", url: "https://x.example/", stamp: "2026-01-01T00:00:00Z", location: "" }) ?? "";
  wellFormed(file);
  assert.deepEqual([...read(file).keys()], ["VERSION", "PRODID", "CALSCALE", "METHOD", "UID", "DTSTAMP", "DTSTART", "SUMMARY", "URL"]);
});

test("times are in UTC, and none that cannot be written is", () => {
  assert.equal(utc("2026-03-29T02:30:00+02:00"), "20260329T003000Z");
  assert.equal(utc("2026-12-31T23:59:59.999-05:00"), "20270101T045959Z");
  assert.equal(utc("0999-01-01T00:00:00Z"), "09990101T000000Z");
  for (const wrong of ["", "soon", "+012026-01-01T00:00:00Z", "-000001-01-01T00:00:00Z", "2026-13-01T00:00:00Z"]) assert.equal(utc(wrong), null, wrong);
  assert.equal(calendarFile({ ...EVENT, starts_at: "soon" }), null);
  assert.equal(calendarFile({ ...EVENT, stamp: "" }), null);
  for (const ends_at of ["later", EVENT.starts_at, "2026-11-21T18:59:59Z"]) assert.ok(!calendarFile({ ...EVENT, ends_at })?.includes("DTEND"), ends_at);
});

test("hostile texts stay texts", () => {
  const texts = [
    "a,b;c\\d", "one\ntwo", "one\r\ntwo\rthree", "x\r\nEND:VEVENT\r\nBEGIN:VEVENT\r\nSUMMARY:mine", "x\nATTENDEE:mailto:a@b.example", "x\r\n folded", "\\n is no end of a line",
    "line\u2028paragraph\u2029next\u0085", "\v\f", "ends with \\", "\\\\,;", ":\";='`<script>alert(1)</script>", "😀".repeat(60), `${"a".repeat(66)}😀😀`, "票".repeat(100), "é\u0301".repeat(80),
    " ".repeat(200), "x".repeat(5_000), "👩‍👩‍👧‍👦".repeat(20), "مساء الخير، مدينة",
  ];
  for (const text of texts) {
    const file = calendarFile({ ...EVENT, uid: text, title: text, location: text, description: text }) ?? "";
    wellFormed(file);
    const properties = read(file);
    assert.deepEqual([...properties.keys()].sort(), [...read(calendarFile(EVENT) ?? "").keys()].sort(), "no property comes in");
    for (const name of ["UID", "SUMMARY", "LOCATION", "DESCRIPTION"]) {
      assert.equal(unescaped(properties.get(name) ?? ""), text.replace(/\r\n|[\r\n\v\f\u0085\u2028\u2029]/g, "\n"), name);
    }
  }
});

test("what no text may have is left out, and half a character is replaced", () => {
  assert.equal(escaped("a\u0000b\u0007c\u001bd\u007fe\tf"), "abcde\tf");
  assert.equal(escaped("a\ud83d"), "a\ufffd");
  assert.equal(escaped("\ude00b"), "\ufffdb");
});

test("a line is folded at 75 octets, wherever a character of four lies", () => {
  for (let before = 60; before <= 80; before += 1) {
    for (const character of ["😀", "票", "é", "a"]) {
      const line = `${"a".repeat(before)}${character.repeat(40)}`;
      const lines = folded(line).split("\r\n");
      assert.equal(lines.map((one, at) => (at === 0 ? one : one.slice(1))).join(""), line);
      assert.ok(lines.every((one, at) => octets(one) <= 75 && (at === 0 || one.startsWith(" "))));
      assert.ok(lines.slice(0, -1).every((one) => octets(one) > 71), "no line is shorter than it must be");
    }
  }
  assert.equal(folded("a".repeat(75)), "a".repeat(75));
  assert.equal(folded("a".repeat(76)), `${"a".repeat(75)}\r\n a`);
  assert.equal(folded(""), "");
});

test("an address is one of the web, and has no end of a line in it", () => {
  const url = (text: string) => read(calendarFile({ ...EVENT, url: text }) ?? "").get("URL");
  assert.equal(url("https://x.example/a b\r\nATTENDEE:c"), "https://x.example/a%20bATTENDEE:c");
  assert.equal(url("https://x.example/票?q=😀"), "https://x.example/%E7%A5%A8?q=%F0%9F%98%80");
  for (const wrong of ["javascript:alert(1)", "data:text/html,x", "/my/tickets/42", ""]) assert.equal(url(wrong), undefined, wrong);
  wellFormed(calendarFile({ ...EVENT, url: `https://x.example/${"a".repeat(300)}` }) ?? "");
});

test("the file has a name that every system takes", () => {
  assert.equal(calendarName("Evening at the Lakeside"), "Evening-at-the-Lakeside.ics");
  assert.equal(calendarName("../../etc/passwd\u0000"), "etc-passwd.ics");
  assert.equal(calendarName("夏季音乐会：上海"), "夏季音乐会-上海.ics");
  for (const title of ["", "…", "///", "😀"]) assert.equal(calendarName(title), "event.ics");
  assert.ok(calendarName("x".repeat(500)).length <= 64);
  assert.doesNotMatch(calendarName(`a${"𠀀".repeat(100)}\ud83d`), /\p{Surrogate}/u);
});
