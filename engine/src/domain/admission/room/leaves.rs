//! The leaves of a first window as they are published: in chunks, each with its path to the root.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tree::{self, CHUNK_LEAVES};
use crate::domain::basics::bytes::Hash;
use crate::domain::basics::ids::GroupId;

/// A chunk of the leaves of a group's first window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chunk {
    /// The group.
    pub group: GroupId,
    /// Its number, from 0.
    pub chunk: usize,
    /// Its leaves, 1,024 or, of the last one, fewer.
    pub leaves: Vec<Hash>,
    /// The path from its root to the root of the tree, from below.
    pub path: Vec<Hash>,
}

impl Chunk {
    /// The chunk of a number, where the chunks of the tree have these roots; `None` if they are fewer.
    #[must_use]
    pub fn new(
        group: &GroupId,
        chunk: usize,
        leaves: Vec<Hash>,
        chunk_roots: &[Hash],
    ) -> Option<Self> {
        let path = tree::path(chunk_roots, chunk)?;
        Some(Self { group: group.clone(), chunk, leaves, path })
    }

    /// The chunks of a group's leaves.
    #[must_use]
    pub fn all(group: &GroupId, leaves: &[Hash]) -> Vec<Self> {
        let roots: Vec<Hash> = leaves.chunks(CHUNK_LEAVES).map(tree::root).collect();
        let chunks = leaves.chunks(CHUNK_LEAVES).enumerate();
        chunks.filter_map(|(at, leaves)| Self::new(group, at, leaves.to_vec(), &roots)).collect()
    }
}
