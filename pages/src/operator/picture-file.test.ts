import assert from "node:assert/strict";
import { test } from "node:test";

import { documentIn, eventIn, namedPictures, withPictures, type MadePicture } from "./event-file.ts";
import { base64, fitted, headerSize, isVector } from "./picture-file.ts";
import type { SaleFile } from "./sale-file.ts";

const GREY = "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z";
/** A grey AVIF of 2 by 2 pixels. */
const AVIF = "AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUIAAADybWV0YQAAAAAAAAAoaGRscgAAAAAAAAAAcGljdAAAAAAAAAAAAAAAAGxpYmF2aWYAAAAADnBpdG0AAAAAAAEAAAAeaWxvYwAAAABEAAABAAEAAAABAAABGgAAAB0AAAAoaWluZgAAAAAAAQAAABppbmZlAgAAAAABAABhdjAxQ29sb3IAAAAAamlwcnAAAABLaXBjbwAAABRpc3BlAAAAAAAAAAIAAAACAAAAEHBpeGkAAAAAAwgICAAAAAxhdjFDgQ0MAAAAABNjb2xybmNseAACAAIAAYAAAAAXaXBtYQAAAAAAAAABAAEEAQKDBAAAACVtZGF0EgAKCBgANogQEAwgMg8f8D///8WfhwB8+ErK42A=";
const bytes = (...parts: (string | readonly number[])[]) => Uint8Array.from(parts.flatMap((part) => (typeof part === "string" ? [...part].map((one) => one.charCodeAt(0)) : [...part])));
const NONE = new Array<number>(20).fill(0);

test("the size of a picture is read before it is decoded", () => {
  assert.deepEqual(headerSize(Uint8Array.from(Buffer.from(GREY, "base64"))), { width: 8, height: 8 });
  assert.deepEqual(headerSize(bytes([0x89], "PNG\r\n\x1a\n", [0, 0, 0, 13], "IHDR", [0, 1, 0, 0, 0, 0, 0, 9], NONE)), { width: 65536, height: 9 });
  assert.deepEqual(headerSize(bytes("GIF89a", [0x10, 0x27, 0x05, 0x00], NONE)), { width: 10_000, height: 5 });
  assert.deepEqual(headerSize(bytes("RIFF", [0, 0, 0, 0], "WEBPVP8X", [10, 0, 0, 0, 0, 0, 0, 0, 0xff, 0x3f, 0, 0x0f, 0, 0], NONE)), { width: 16384, height: 16 });
  const avif = Uint8Array.from(Buffer.from(AVIF, "base64"));
  assert.deepEqual(headerSize(avif), { width: 2, height: 2 });
  for (const none of [bytes(), bytes([0xff]), bytes([0xff, 0xd8, 0xff, 0xd9]), bytes([0x89], "PNG"), bytes("RIFF1234WEBP"), bytes("BM", NONE), bytes([0xff, 0xd8, 0xff, 0xe0, 0xff, 0xff], NONE)]) assert.equal(headerSize(none), null);
});

test("the size of an AVIF is that of the largest picture in it, whatever its boxes say", () => {
  const four = (value: number) => [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255];
  const box = (type: string, content: readonly number[]): number[] => [...four(content.length + 8), ...bytes(type), ...content];
  const ispe = (width: number, height: number) => box("ispe", [0, 0, 0, 0, ...four(width), ...four(height)]);
  const avif = (brand: string, ...sizes: readonly number[][]) => Uint8Array.from([...box("ftyp", [...bytes(brand), 0, 0, 0, 0]), ...box("meta", [0, 0, 0, 0, ...box("iprp", box("ipco", sizes.flat()))])]);
  assert.deepEqual(headerSize(avif("avif", ispe(320, 180), ispe(60_000, 40_000), ispe(512, 512))), { width: 60_000, height: 40_000 });
  assert.deepEqual(headerSize(avif("avis", box("pixi", [0]), ispe(16, 9))), { width: 16, height: 9 });
  for (const none of [avif("avif"), avif("heic", ispe(16, 9)), avif("avif", [...four(7), ...bytes("ispe")]), avif("avif", [...four(1), ...bytes("ispe")]), avif("avif", [...four(99), ...bytes("ispe")]), avif("avif", box("ispe", [0])), avif("avif", ispe(16, 9)).subarray(0, 40)]) {
    assert.equal(headerSize(none), null);
  }
});

test("SVG is known by its name, its type and its text", () => {
  for (const [name, type, text] of [["a.svg", "", ""], ["a.SVGZ", "", ""], ["a.png", "image/svg+xml", ""], ["a.jpg", "image/jpeg", "<svg onload=x>"], ["a.png", "", "\ufeff \n<?xml version='1.0'?><svg/>"], ["a", "", "<!-- x --><svg/>"]] as const) {
    assert.ok(isVector(name, type, new TextEncoder().encode(text)), name + type + text);
  }
  assert.ok(!isVector("a.jpg", "image/jpeg", Uint8Array.from(Buffer.from(GREY, "base64"))));
});

test("a picture is made as large as it may be, and keeps its form", () => {
  assert.deepEqual(fitted({ width: 4000, height: 3000 }), { width: 1600, height: 1200 });
  assert.deepEqual(fitted({ width: 8, height: 8 }), { width: 8, height: 8 });
  assert.deepEqual(fitted({ width: 1, height: 40_000 }), { width: 1, height: 1600 });
  assert.equal(base64(new Uint8Array(100_000).fill(7)), Buffer.alloc(100_000, 7).toString("base64"));
});

const MADE: MadePicture = { sha256: "ab", width: 16, height: 9, bytes: new Uint8Array() };
const sale = (event: unknown): SaleFile => ({ sale: "s", tiers: [], event });

test("pictures that are named by their files are named by their hashes", () => {
  const file = sale({ starts_at: "2026-11-21T20:00:00+01:00", about: { contact: "x", images: [{ file: "x.jpg", alt: { en: "A" } }, { sha256: "cd", alt: "B", width: 1, height: 1 }, { file: "y.jpg", alt: "C" }, { file: "x.jpg", alt: "D" }] } });
  assert.deepEqual(namedPictures(file), ["x.jpg", "y.jpg"]);
  const { event } = withPictures(file, new Map([["x.jpg", MADE]])) as { event: { starts_at: string; about: { contact: string; images: unknown[] } } };
  assert.equal(event.starts_at, "2026-11-21T20:00:00+01:00");
  assert.equal(event.about.contact, "x");
  assert.deepEqual(event.about.images, [
    { sha256: "ab", alt: { en: "A" }, width: 16, height: 9 }, { sha256: "cd", alt: "B", width: 1, height: 1 }, { file: "y.jpg", alt: "C" }, { sha256: "ab", alt: "D", width: 16, height: 9 },
  ]);
  assert.deepEqual(documentIn(file, new Map([["x.jpg", MADE]]))?.images?.map(({ sha256 }) => sha256), ["ab", "cd", "ab"]);
});

test("what is wrong in a file is not shown, and breaks nothing", () => {
  for (const event of [undefined, null, 7, "x", [], { about: null }, { about: "ab" }, { about: { images: 7 } }, { about: { images: [null, 7, { file: 7 }] } }]) {
    assert.deepEqual(namedPictures(sale(event)), []);
    assert.equal(withPictures(sale(event), new Map()).event, event);
    documentIn(sale(event), new Map());
    eventIn(sale(event));
  }
  const wrong = { starts_at: 7, venue: { name: 7 }, category: "nothing", performers: "x", picture: { sha256: 1 }, about: { links: [null, { url: 7 }, { url: "https://x.example" }], description: { en: 7, zh: "中" }, latitude: "x" } };
  assert.deepEqual(eventIn(sale(wrong)), { starts_at: null, doors_at: null, ends_at: null, time_zone: null, venue: null, category: null, performers: [], picture: null });
  const about = documentIn(sale(wrong), new Map());
  assert.deepEqual([about?.links, about?.description, about?.latitude], [[{ title: "https://x.example", url: "https://x.example" }], { zh: "中" }, null]);
});
