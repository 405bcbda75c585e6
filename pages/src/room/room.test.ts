import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import en from "../i18n/room.en.json";
import zh from "../i18n/room.zh.json";
import type { KeptPlace } from "../shared/place.ts";
import { subjectOf } from "../shared/session.ts";
import { isLeftOut, pauseMs, type Asked } from "./poll.ts";
import { check, placeIn } from "./proof.ts";
import { shuffled } from "./shuffle.ts";
import { admits, standing, type RoomDocument, type RoomGroup } from "./standing.ts";
import { leafOf, rootByPath, rootOf } from "./tree.ts";
import { waitText, waitWords } from "./view.ts";

/** The vectors of `engine/src/domain/admission/room/shuffle.rs`: Ethereum's, as (seed, N, SHA-256 of the file). */
const VECTORS = [
  ["0623ccb9b1619bd388284a438034d8cb6431964ba727d8b1c450303105735488", 5, "155bd957aacd98cf39ee7f85ec3f50048bcb121b3d07cf352bfee4306bf6033d"],
  ["01b4f6bd5d6a06a7b74a8565ceb4f845afe0ae96a0ac05cf5e86066bf7b538ec", 10, "030e863e01b804aa084bdf69a7da2ca6cad7bc51ffc5dbd50cd74e3a8910a50e"],
  ["01b4f6bd5d6a06a7b74a8565ceb4f845afe0ae96a0ac05cf5e86066bf7b538ec", 33, "a014701e692faf6390f43a5b32470689ffdec35891f58bcd7572eb8226b19488"],
  ["0623ccb9b1619bd388284a438034d8cb6431964ba727d8b1c450303105735488", 100, "5b6ee6048c54dc7934d1067d81d09441a33178cc96bbea059f56ced1e69ac42f"],
  ["01b4f6bd5d6a06a7b74a8565ceb4f845afe0ae96a0ac05cf5e86066bf7b538ec", 1_000, "1fe4a03c481ce317d63640d1caf23d3466c0583a194998a66d8a3be818a5932a"],
] as const;

/** The file of a vector: YAML whose list is broken behind the first comma beyond column 80. */
function file(seed: string, mapping: readonly number[]): string {
  let list = "mapping: [";
  let column = list.length;
  mapping.forEach((place, index) => {
    const before = index === 0 ? "" : column + 1 > 80 ? ",\n  " : ", ";
    column = (before.includes("\n") ? 2 : column + before.length) + String(place).length;
    list += before + place;
  });
  return `seed: '0x${seed}'\ncount: ${mapping.length}\n${list}]\n`;
}

test("places are those of Ethereum's vectors, as the engine's are", async () => {
  for (const [seed, count, expected] of VECTORS) {
    const mapping = await Promise.all(Array.from({ length: count }, (_, index) => shuffled(seed, count, index)));
    const found = createHash("sha256").update(file(seed, mapping as number[])).digest("hex");
    assert.equal(found, expected, `${count}`);
  }
  assert.equal(await shuffled(VECTORS[0][0], 5, 5), null);
  assert.equal(await shuffled(VECTORS[0][0], 0, 0), null);
});

test("places of a large draw are below its size", async () => {
  const count = 4_294_967_295;
  const place = await shuffled(VECTORS[0][0], count, count - 1);
  assert.ok(place !== null && place >= 0 && place < count);
});

test("a later window begins at its first index", async () => {
  const window = { first: 100, end: 105, seed: VECTORS[0][0], record: 7 };
  const places = await Promise.all([100, 101, 102, 103, 104].map((index) => placeIn(window, index)));
  assert.deepEqual([...places].sort(), [100, 101, 102, 103, 104]);
  assert.equal(await placeIn(window, 99), null);
  assert.equal(await placeIn(window, 105), null);
});

/** The vectors of Certificate Transparency that `engine/src/domain/admission/room/tree.rs` quotes. */
const ROOTS = ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125", "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77", "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"];
const DATA = ["", "00", "10", "2021"];

test("the tree is that of RFC 6962", async () => {
  const leaves = DATA.map((data) => createHash("sha256").update(Buffer.from(`00${data}`, "hex")).digest("hex"));
  for (const [position, root] of ROOTS.entries()) {
    const some = leaves.slice(0, position + 2);
    assert.equal(await rootOf(some), root);
  }
  const [first = "", second = "", third = ""] = leaves;
  const path = [second, third];
  assert.equal(await rootByPath(first, 0, 3, path), await rootOf(leaves.slice(0, 3)));
  assert.equal(await rootByPath(third, 2, 3, [await rootOf([first, second])]), await rootOf(leaves.slice(0, 3)));
  assert.equal(await rootByPath(first, 0, 3, [second]), null);
  assert.equal(await rootByPath(first, 3, 3, path), null);
  assert.equal(await rootOf([]), createHash("sha256").digest("hex"));
});

const SEED = VECTORS[1][0];
const KEPT: KeptPlace = { sale: "s", token: "t", group: "all", index: 3, window: "first", nonce: "00112233445566778899aabbccddeeff", place: null, joinedAtMs: 0 };

test("a check says whether leaf, root and place are those that were published", async () => {
  const leaves = await Promise.all(Array.from({ length: 10 }, (_, index) => leafOf("s", "all", index, `buyer-${index}`, KEPT.nonce)));
  const get = async (path: string) =>
    path === "windows/all/3" ? { first: 0, end: 10, seed: SEED, record: 2 } : path === "leaves/all/0" ? { leaves, path: [] } : assert.fail(path);
  const root = await rootOf(leaves);
  const proof = await check(get, KEPT, "buyer-3", root);
  assert.deepEqual(proof, { window: { first: 0, end: 10, seed: SEED, record: 2 }, place: await shuffled(SEED, 10, 3), leaf: leaves[3], isOwn: true, root, isSeen: true });
  const other = await check(get, KEPT, "buyer-4", "ff");
  assert.equal(other.isOwn, false);
  assert.equal(other.isSeen, false);
  const unknown = await check(get, KEPT, null, null);
  assert.equal(unknown.isOwn, null);
  assert.equal(unknown.isSeen, null);
  assert.equal(subjectOf(`e.${Buffer.from(JSON.stringify({ sub: "张三" })).toString("base64url")}.s`), "张三");
  assert.equal(subjectOf("x"), null);
});

const OPENS = Date.parse("2026-06-01T08:00:00.000Z");
const GROUP: RoomGroup = { group: "all", serving: 9_000, passed: 100, joined: 41_200, window: 41_200, seed: SEED, count: 41_200, advance: [6_000, 10_800], lasts_to: [14_000, 18_100] };
const DOCUMENT: RoomDocument = {
  state: "serving", as_of: "2026-06-01T08:01:30.000Z", draw_closes_at: "2026-06-01T07:58:00.000Z", opens_at: "2026-06-01T08:00:00.000Z",
  groups: [GROUP], rate: 200, record: 92, head: "4a1f", tiers: [7_150], poll: { min_seconds: 2, max_seconds: 60, jitter_percent: 30 },
};

test("a place waits, is due and has passed by the document", () => {
  const at = (place: number, nowMs = OPENS + 90_000) => standing(DOCUMENT, GROUP, 0, place, nowMs);
  assert.deepEqual(at(99), { kind: "passed", place: 99 });
  assert.deepEqual(at(100), { kind: "due", place: 100 });
  assert.deepEqual(at(8_999), { kind: "due", place: 8_999 });
  assert.deepEqual(at(9_000, OPENS - 1), { kind: "drawn", place: 9_000 });
  const waiting = at(12_599);
  assert.ok(waiting.kind === "waiting" && waiting.wait !== null);
  assert.equal(waiting.ahead, 3_599);
  assert.equal(waiting.wait.fromMs, 20_000);
  assert.equal(waiting.wait.toMs, 36_000);
  assert.equal(waiting.odds, "likely");
  const beyond = at(14_000);
  assert.ok(beyond.kind === "waiting" && beyond.wait === null && beyond.odds === "possible");
  const hopeless = at(18_100);
  assert.ok(hopeless.kind === "waiting" && hopeless.odds === "unlikely");
});

test("a place without a wait is told what its turn depends on", () => {
  const words = (place: number) => {
    const at = standing(DOCUMENT, GROUP, 0, place, OPENS + 90_000);
    return at.kind === "waiting" ? waitWords(at) : null;
  };
  assert.equal(words(13_999), waitText({ fromMs: 5_000 / 10_800 * 60_000, toMs: 50_000 }));
  assert.equal(words(14_000), en["wait.possible"]);
  assert.equal(words(18_099), en["wait.possible"]);
  assert.equal(words(18_100), en["wait.unlikely"]);
  // Neither gives minutes, in either language.
  for (const text of [en["wait.possible"], en["wait.unlikely"], zh["wait.possible"], zh["wait.unlikely"]]) {
    assert.doesNotMatch(text, /\d|minute|hour|分钟|小时|\{/);
  }
  assert.equal(new Set([en["wait.possible"], en["wait.unlikely"], zh["wait.possible"], zh["wait.unlikely"]]).size, 4);
});

test("an index that is not drawn says what it waits for", () => {
  const { seed: _, count: __, ...undrawn } = GROUP;
  const closed: RoomGroup = { ...undrawn, count: 41_200 };
  const before = Date.parse(DOCUMENT.draw_closes_at);
  assert.equal(standing(DOCUMENT, undrawn, 5, null, before - 1).kind, "joined");
  assert.equal(standing(DOCUMENT, undrawn, 5, null, before).kind, "drawing");
  assert.equal(standing(DOCUMENT, closed, 5, null, before - 1).kind, "drawing");
  assert.equal(standing(DOCUMENT, closed, 41_200, null, OPENS).kind, "later");
  assert.equal(standing(DOCUMENT, GROUP, 41_200, null, OPENS).kind, "later");
});

test("nobody is sent on while the room admits nobody", () => {
  for (const [state, may] of [["serving", true], ["stalled", true], ["recovering", true], ["paused", false], ["closed", false], ["sold_out", false]] as const) {
    assert.equal(admits({ ...DOCUMENT, state }), may, state);
  }
});

const ASKED: Asked = { document: DOCUMENT, standing: null, nowMs: OPENS, isHidden: false, failures: 0, retryAfterSeconds: null, random: 0.5 };

test("the next request comes after a tenth of the wait, within bounds and jitter", () => {
  const waiting = (fromMs: number) => ({ kind: "waiting", place: 1, ahead: 1, odds: "likely", wait: { fromMs, toMs: fromMs * 2 } }) as const;
  assert.equal(pauseMs({ ...ASKED, standing: waiting(300_000) }), 30_000);
  assert.equal(pauseMs({ ...ASKED, standing: waiting(1_000) }), 2_000);
  assert.equal(pauseMs({ ...ASKED, standing: waiting(9_000_000) }), 60_000);
  assert.equal(pauseMs({ ...ASKED, standing: waiting(300_000), random: 0 }), 21_000);
  assert.equal(pauseMs({ ...ASKED, standing: waiting(300_000), random: 1 }), 39_000);
  // Before the opening a place waits for those before it as well: a crowd does not ask all at once.
  const drawn = (place: number) => ({ ...ASKED, standing: { kind: "drawn", place }, nowMs: OPENS - 100_000 }) as const;
  assert.equal(pauseMs(drawn(0)), 10_000);
  assert.equal(pauseMs(drawn(40_000)), 30_000);
  assert.equal(pauseMs({ ...drawn(40_000), document: { ...DOCUMENT, rate: 0 } }), 10_000);
  assert.equal(pauseMs({ ...ASKED, standing: { kind: "joined" }, nowMs: Date.parse(DOCUMENT.draw_closes_at) - 3_600_000 }), 60_000);
  // A crowd before its draw asks less often; a request that fails does not make that longer still.
  const crowd = { ...DOCUMENT, poll: { ...DOCUMENT.poll, min_seconds: 50 } };
  assert.equal(pauseMs({ ...ASKED, document: crowd, standing: { kind: "drawing" } }), 50_000);
  assert.equal(pauseMs({ ...ASKED, document: crowd, standing: { kind: "drawing" }, failures: 2 }), 50_000);
  // Without an advance the rate says how soon: 200 a second.
  const unknown = (ahead: number, odds: "likely" | "possible" | "unlikely") => ({ ...ASKED, standing: { kind: "waiting", place: ahead, ahead, odds, wait: null } }) as const;
  assert.equal(pauseMs(unknown(30_000, "likely")), 15_000);
  assert.equal(pauseMs(unknown(3, "likely")), 2_000);
  // Towards the end the next places depend on what those before them leave: at any moment.
  assert.equal(pauseMs(unknown(3, "possible")), 2_000);
  assert.equal(pauseMs(unknown(3, "unlikely")), 60_000);
  assert.equal(pauseMs({ ...unknown(3, "likely"), document: { ...DOCUMENT, state: "paused" } }), 60_000);
  assert.equal(pauseMs({ ...unknown(3, "likely"), document: { ...DOCUMENT, rate: 0 } }), 6_000);
  assert.equal(pauseMs({ ...ASKED, isHidden: true }), 60_000);
  assert.equal(pauseMs({ ...ASKED, isHidden: true, standing: { kind: "due", place: 1 } }), 2_000);
});

test("failures are asked about later and later, and not before the server wants it", () => {
  const pauses = [1, 2, 3, 20].map((failures) => pauseMs({ ...ASKED, document: null, failures }));
  assert.deepEqual(pauses, [4_000, 8_000, 16_000, 60_000]);
  assert.equal(pauseMs({ ...ASKED, document: null, failures: 1, retryAfterSeconds: 9 }), 9_000);
});

test("requests are left out as the document says, but never of who is due", () => {
  const busy = { ...DOCUMENT, poll: { ...DOCUMENT.poll, drop: 75 } };
  assert.ok(isLeftOut(busy, null, 0.74));
  assert.ok(!isLeftOut(busy, null, 0.75));
  assert.ok(!isLeftOut(busy, { kind: "due", place: 1 }, 0));
  assert.ok(!isLeftOut(DOCUMENT, null, 0));
});
