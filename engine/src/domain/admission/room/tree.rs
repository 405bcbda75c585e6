//! The Merkle tree over the members who joined: it proves that a member was in the draw, and that nobody was added
//! later.
//!
//! Source: RFC 6962, section 2.1 <https://www.rfc-editor.org/rfc/rfc6962#section-2.1>. A leaf is
//! SHA-256(0x00 ‖ data), a node SHA-256(0x01 ‖ left ‖ right), the root of no leaf at all the SHA-256 of
//! nothing; the left part of n leaves is the largest power of two below n.
//!
//! The leaf of an index stands at that index. An index that nobody holds has the empty leaf. Leaves are
//! published in chunks of [`CHUNK_LEAVES`], a power of two: each chunk is a subtree, and the whole tree is one
//! over the roots of its chunks. So a chunk and its path prove all of its leaves.

use crate::domain::basics::bytes::Hash;

/// Leaves of a chunk; the last of a tree may have fewer.
pub const CHUNK_LEAVES: usize = 1_024;

/// The first byte of a leaf.
const LEAF: u8 = 0x00;
/// The first byte of a node.
const NODE: u8 = 0x01;

/// The leaf of some data.
#[must_use]
pub fn leaf(data: &[u8]) -> Hash {
    Hash::of_parts(&[&[LEAF], data])
}

/// The leaf of an index that nobody holds: that of no data.
#[must_use]
pub fn empty_leaf() -> Hash {
    leaf(&[])
}

fn node(left: Hash, right: Hash) -> Hash {
    Hash::of_parts(&[&[NODE], &left.0, &right.0])
}

/// The largest power of two below a number of leaves, of which there are two or more.
fn split(count: usize) -> usize {
    let half = count.next_power_of_two() / 2;
    half.max(1)
}

/// The root over leaves, or over the roots of chunks.
#[must_use]
pub fn root(hashes: &[Hash]) -> Hash {
    match hashes {
        [] => Hash::of_parts(&[]),
        [only] => *only,
        _ => {
            let (left, right) = hashes.split_at(split(hashes.len()));
            node(root(left), root(right))
        }
    }
}

/// The path from one of the hashes to their root, from below; `None` if there is no such hash.
#[must_use]
pub fn path(hashes: &[Hash], at: usize) -> Option<Vec<Hash>> {
    match hashes {
        [] => None,
        [_] => (at == 0).then(Vec::new),
        _ => {
            let (left, right) = hashes.split_at(split(hashes.len()));
            let (mut below, sibling) = match at.checked_sub(left.len()) {
                None => (path(left, at)?, right),
                Some(at) => (path(right, at)?, left),
            };
            below.push(root(sibling));
            Some(below)
        }
    }
}

/// The root that a path leads to from the hash that stands at `at` of `count`; `None` if the path has another
/// length than paths from there have.
#[must_use]
pub fn root_by_path(hash: Hash, at: usize, count: usize, path: &[Hash]) -> Option<Hash> {
    if at >= count {
        return None;
    }
    if count == 1 {
        return path.is_empty().then_some(hash);
    }
    let (sibling, below) = path.split_last()?;
    let half = split(count);
    match at.checked_sub(half) {
        None => Some(node(root_by_path(hash, at, half, below)?, *sibling)),
        Some(at) => Some(node(*sibling, root_by_path(hash, at, count - half, below)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leaves, roots by size and paths: the vectors of Certificate Transparency.
    /// Source: `testonly/constants.go` of <https://github.com/transparency-dev/merkle>.
    const LEAVES: [&[u8]; 8] = [
        b"",
        b"\x00",
        b"\x10",
        b"\x20\x21",
        b"\x30\x31",
        b"\x40\x41\x42\x43",
        b"\x50\x51\x52\x53\x54\x55\x56\x57",
        b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
    ];
    const ROOTS: [&str; 9] = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    /// Index from 0, number of leaves, path.
    const PATHS: [(usize, usize, &[&str]); 5] = [
        (0, 1, &[]),
        (
            0,
            8,
            &[
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
        ),
        (
            5,
            8,
            &[
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        ),
        (2, 3, &["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]),
        (
            1,
            5,
            &[
                "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            ],
        ),
    ];

    fn leaves(count: usize) -> Vec<Hash> {
        LEAVES.iter().take(count).map(|data| leaf(data)).collect()
    }

    #[test]
    fn roots_and_paths_are_those_of_certificate_transparency() {
        for (count, expected) in ROOTS.iter().enumerate() {
            assert_eq!(root(&leaves(count)).to_string(), *expected, "{count} leaves");
        }
        for (at, count, expected) in PATHS {
            let all = leaves(count);
            let path = path(&all, at).unwrap();
            let text: Vec<String> = path.iter().map(Hash::to_string).collect();
            assert_eq!(text, expected, "{at} of {count}");
            assert_eq!(root_by_path(all[at], at, count, &path), Some(root(&all)));
        }
        assert_eq!(empty_leaf().to_string(), ROOTS[1]);
        assert_eq!((path(&[], 0), path(&leaves(3), 3)), (None, None));
    }

    #[test]
    fn a_path_proves_one_leaf_at_one_index_of_one_tree() {
        for count in 1..=20 {
            let all: Vec<Hash> = (0..count).map(|number: u8| leaf(&[number])).collect();
            let (count, root) = (all.len(), root(&all));
            for at in 0..count {
                let path = path(&all, at).unwrap();
                let found = |hash, at, count, path: &[Hash]| {
                    root_by_path(hash, at, count, path) == Some(root)
                };
                assert!(found(all[at], at, count, &path));
                assert!(!found(leaf(b"another"), at, count, &path));
                assert!(!found(all[at], at, count, &[path.clone(), vec![root]].concat()));
                assert!(!found(all[at], count, count, &path));
                for other in (0..count).filter(|other| *other != at) {
                    assert!(!found(all[at], other, count, &path), "{at} as {other} of {count}");
                }
                for without in 0..path.len() {
                    let mut short = path.clone();
                    short.remove(without);
                    assert!(!found(all[at], at, count, &short));
                }
            }
        }
    }

    #[test]
    fn a_chunk_is_a_subtree() {
        let data = |number: u32| leaf(&number.to_be_bytes());
        for count in [1, 1_023, 1_024, 1_025, 3_000, 5_120] {
            let all: Vec<Hash> = (0..count).map(data).collect();
            let chunks: Vec<Hash> = all.chunks(CHUNK_LEAVES).map(root).collect();
            assert_eq!(root(&chunks), root(&all), "{count}");
            let last = chunks.len() - 1;
            let path = path(&chunks, last).unwrap();
            assert_eq!(root_by_path(chunks[last], last, chunks.len(), &path), Some(root(&all)));
        }
    }
}
