import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

/** Tests run in the folder of the pages. */
const folder = "src/i18n/";
const read = (name: string) => JSON.parse(readFileSync(folder + name, "utf8")) as Record<string, string>;
const placeholders = (text: string) => [...new Set(text.match(/\{\w+\}/g) ?? [])].sort();
const files = readdirSync(folder);

test("every file of texts has its twin in the other language", () => {
  for (const name of files) {
    const other = name.replace(/\.(en|zh)\.json$/, (ending) => (ending === ".en.json" ? ".zh.json" : ".en.json"));
    assert.ok(files.includes(other), `${name} has no ${other}`);
  }
});

for (const name of files.filter((file) => file.endsWith(".en.json"))) {
  test(`${name} and its twin have the same keys, values and no empty text`, () => {
    const en = read(name);
    const zh = read(name.replace(".en.", ".zh."));
    assert.deepEqual(Object.keys(zh).sort(), Object.keys(en).sort());
    for (const [key, text] of Object.entries(en)) {
      assert.notEqual(text.trim(), "", key);
      assert.notEqual(zh[key]?.trim(), "", key);
      assert.deepEqual(placeholders(zh[key] ?? ""), placeholders(text), key);
    }
  });
}

test("a page's own keys do not hide shared ones", () => {
  const shared = Object.keys(read("shared.en.json"));
  // The waiting room and its reminders are one file each, with their own texts only.
  for (const name of files.filter((file) => !/^(shared|room|reminders)\./.test(file))) {
    for (const key of Object.keys(read(name))) {
      assert.ok(!shared.includes(key), `${name}: ${key}`);
    }
  }
});
