/** The Merkle tree over those who joined (RFC 6962, section 2.1; docs/draw.md), to check one's own leaf with. */
import { bytesOf, hexOf, sha256 } from "./hash.ts";

/** Leaves of a chunk; the last of a tree may have fewer. */
export const CHUNK_LEAVES = 1_024;

const node = async (left: string, right: string) => hexOf(await sha256([1], bytesOf(left), bytesOf(right)));

/** The largest power of two below a number that is two or more. */
const split = (count: number) => 2 ** (Math.ceil(Math.log2(count)) - 1);

/** The root over hashes. */
export async function rootOf(hashes: readonly string[]): Promise<string> {
  const [only] = hashes;
  if (only === undefined) {
    return hexOf(await sha256([]));
  }
  if (hashes.length === 1) {
    return only;
  }
  const half = split(hashes.length);
  return node(await rootOf(hashes.slice(0, half)), await rootOf(hashes.slice(half)));
}

/** The root that a path leads to from the hash at `at` of `count`; null if it is no path from there. */
export async function rootByPath(hash: string, at: number, count: number, path: readonly string[]): Promise<string | null> {
  if (at >= count) {
    return null;
  }
  if (count === 1) {
    return path.length === 0 ? hash : null;
  }
  const sibling = path[path.length - 1];
  if (sibling === undefined) {
    return null;
  }
  const half = split(count);
  const isLeft = at < half;
  const below = await rootByPath(hash, isLeft ? at : at - half, isLeft ? half : count - half, path.slice(0, -1));
  return below === null ? null : isLeft ? node(below, sibling) : node(sibling, below);
}

/** A text as it is hashed: its length in two bytes, then UTF-8. */
function framed(text: string): number[] {
  const bytes = new TextEncoder().encode(text);
  return [bytes.length >> 8, bytes.length & 255, ...bytes];
}

/** The leaf of somebody who joined. */
export async function leafOf(sale: string, group: string, index: number, buyer: string, nonce: string): Promise<string> {
  const four = [24, 16, 8, 0].map((bits) => (index >>> bits) & 255);
  return hexOf(await sha256([0], framed(sale), framed(group), four, framed(buyer), bytesOf(nonce)));
}
