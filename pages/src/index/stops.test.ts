import assert from "node:assert/strict";
import { test } from "node:test";

import { folded } from "./fold.ts";
import { MOST, suggested, suggestionsOf } from "./stops.ts";

const STOPS = suggestionsOf([
  { name: "Bad Zurzach", stops: ["8503504"] },
  { name: "Łódź Fabryczna", stops: ["5102617"] },
  { name: "Zürich HB", stops: ["8503000", "ZUE"] },
  { name: "Zürich Flughafen", stops: ["8503016"] },
  { name: "北京南", stops: ["VNP"] },
  { name: "南京", stops: ["NJH"] },
  { name: "Ｓｈｉｎｊｕｋｕ", stops: ["JY17"] },
  { name: "Αθήνα", stops: ["ATH"] },
  { name: "Москва-Пассажирская", stops: ["2006004"] },
  { name: "X", stops: ["X"] },
]);
const names = (typed: string) => suggested(STOPS, typed).shown.map(({ name }) => name);

test("a text is folded to what people type", () => {
  for (const [text, plain] of [["Zürich", "zurich"], ["Ｗｉｄｅ", "wide"], ["Łódź", "lodz"], ["Straße", "strasse"], ["Ærøskøbing", "aeroskobing"], ["İzmir", "izmir"], ["ΑΘΗΝΑΣ", "αθηνασ"]]) {
    assert.equal(folded(text!), plain);
  }
});

test("a stop is found by a part of its name, whatever case, width, accents and script", () => {
  assert.deepEqual(names("zurich"), ["Zürich HB", "Zürich Flughafen"]);
  assert.deepEqual(names("ZÜRICH h"), ["Zürich HB", "Zürich Flughafen"]);
  assert.deepEqual(names("ｚürich　flug"), ["Zürich Flughafen"]);
  assert.deepEqual(names("Zu\u0308rich hb"), ["Zürich HB"]);
  assert.deepEqual(names("lodz"), ["Łódź Fabryczna"]);
  assert.deepEqual(names("shinju"), ["Ｓｈｉｎｊｕｋｕ"]);
  assert.deepEqual(names("京"), ["北京南", "南京"]);
  assert.deepEqual(names("αθηνα"), ["Αθήνα"]);
  assert.deepEqual(names("пасс"), ["Москва-Пассажирская"]);
  assert.deepEqual(names("nowhere"), []);
});

test("a stop is found by its code", () => {
  assert.deepEqual(names("vnp"), ["北京南"]);
  assert.deepEqual(names("ZUE"), ["Zürich HB"]);
  assert.deepEqual(names("jy17"), ["Ｓｈｉｎｊｕｋｕ"]);
  assert.deepEqual(STOPS.at(-1)?.codes, [], "a code that is the name is not said twice");
});

test("what begins so comes first", () => {
  assert.deepEqual(names("zur"), ["Zürich HB", "Zürich Flughafen", "Bad Zurzach"]);
  assert.deepEqual(names("南"), ["南京", "北京南"]);
});

test("a part that matches two hundred shows some and says how many more", () => {
  const many = suggestionsOf(Array.from({ length: 200 }, (_, index) => ({ name: `Neustadt ${index}`, stops: [`n${index}`] })));
  const { shown, more } = suggested(many, "neu");
  assert.deepEqual([shown.length, more], [MOST, 200 - MOST]);
  assert.deepEqual(suggested(many, "neustadt 177"), { shown: [many[177]], more: 0 });
  assert.deepEqual([suggested(many, "").shown.length, suggested(many, " ").more], [MOST, 200 - MOST]);
  assert.equal(suggested(many, "Neustadt 1").shown[0]?.name, "Neustadt 1", "what was typed in full is first");
});

test("the stops of one name are one suggestion, also from two pages of a list", () => {
  const [one, ...others] = suggestionsOf([{ name: "Neustadt", stops: ["1"] }, { name: "NEUSTADT", stops: ["2"] }]);
  assert.deepEqual([one?.name, one?.codes, others], ["Neustadt", ["1", "2"], []]);
});
