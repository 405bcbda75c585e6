/**
 * Places from a seed: swap-or-not with 90 rounds, as docs/draw.md has it (Ethereum's `compute_shuffled_index`). The
 * engine's is `engine/src/domain/admission/room/shuffle.rs`; a test compares this one with the same vectors.
 */
import { bytesOf, sha256 } from "./hash.ts";

/** Number of rounds. */
const ROUNDS = 90;

/** The place of an index below `count`; null if it is not below. */
export async function shuffled(seedHex: string, count: number, index: number): Promise<number | null> {
  if (!(index >= 0 && index < count)) {
    return null;
  }
  const seed = bytesOf(seedHex);
  let number = index;
  for (let round = 0; round < ROUNDS; round += 1) {
    const hash = await sha256(seed, [round]);
    const pivot = Number(new DataView(hash.buffer).getBigUint64(0, true) % BigInt(count));
    const partner = (pivot + count - number) % count;
    const position = Math.max(number, partner);
    const block = Math.floor(position / 256);
    const source = await sha256(seed, [round, block & 255, (block >> 8) & 255, (block >> 16) & 255, (block >> 24) & 255]);
    const byte = source[Math.floor((position % 256) / 8)] ?? 0;
    number = (byte >> (position % 8)) & 1 ? partner : number;
  }
  return number;
}
