//! Copies of a sale's file: compressed, under partition keys of their own, for those who read many at once.
//!
//! One partition serves 3,000 read units a second, and a thousand functions that start together all read
//! the file of the sale that everybody wants. So the file lies in the catalogue once as it is, and
//! [`COPIES`] times compressed under other keys; a reader takes one of them by chance and reads it with
//! eventual consistency, which costs half. A copy cannot be of another version than the header says: its
//! chunks are called after the publication, whose name is never used again, so that a reader which the
//! copy has not reached yet, or which finds it cleaned away, finds fewer chunks than there are and reads
//! the file itself.

use std::io::{Read as _, Write as _};

use aws_lc_rs::rand;
use aws_sdk_dynamodb::types::AttributeValue;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use super::super::items::Item;
use super::MAX_FILE_BYTES;
use engine::domain::basics::ids::SaleId;

/// Number of compressed copies of a file. With them 2,000 starts in ten seconds at 60,000 listed seats take
/// a small part of one partition's 3,000 read units a second: `store::cold`.
pub(super) const COPIES: u8 = 8;

/// What a header says of the copies of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Copies {
    pub count: u8,
    /// Number of chunks of each.
    pub chunks: usize,
}

/// The partition of a copy; no sale id has a `#`.
pub(super) fn partition(sale: &SaleId, copy: u8) -> String {
    format!("{sale}#copy#{copy}")
}

/// A copy chosen at random; the first if the system gives no entropy.
pub(super) fn choose(count: u8) -> u8 {
    let mut byte = [0];
    let _ = rand::fill(&mut byte);
    byte[0].checked_rem(count).unwrap_or(0)
}

/// Compresses a file (raw DEFLATE, RFC 1951).
pub(super) fn compressed(json: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(json)?;
    encoder.finish()
}

/// The file of a copy's chunks; `None` if it is not whole, or larger than any file.
pub(super) fn file_of(chunks: &[Item]) -> Option<Vec<u8>> {
    let data = |chunk: &Item| chunk.get("data").map(AttributeValue::as_b)?.ok().cloned();
    let data: Vec<_> = chunks.iter().map(data).collect::<Option<_>>()?;
    let data: Vec<u8> = data.iter().flat_map(|blob| blob.as_ref()).copied().collect();
    let most = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX);
    let mut json = Vec::new();
    DeflateDecoder::new(data.as_slice()).take(most + 1).read_to_end(&mut json).ok()?;
    (json.len() <= MAX_FILE_BYTES).then_some(json)
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::primitives::Blob;

    use super::*;

    fn chunks(data: &[u8], bytes: usize) -> Vec<Item> {
        let chunk = |data: &[u8]| AttributeValue::B(Blob::new(data));
        data.chunks(bytes).map(|data| Item::from([("data".to_owned(), chunk(data))])).collect()
    }

    #[test]
    fn a_file_is_what_was_compressed_and_nothing_that_is_not_whole() {
        let json: Vec<u8> =
            (0..5_000).flat_map(|seat| format!("\"row-{seat}\",").into_bytes()).collect();
        let short = compressed(&json).unwrap();
        assert!(short.len() * 3 < json.len(), "{} of {} bytes", short.len(), json.len());
        assert_eq!(file_of(&chunks(&short, 1_000)), Some(json));
        assert_eq!(file_of(&chunks(&short[..short.len() - 9], 1_000)), None, "its end is missing");
        assert_eq!(file_of(&[Item::new()]), None, "a chunk without data");
        let bomb = compressed(&vec![0; MAX_FILE_BYTES + 1]).unwrap();
        assert_eq!(file_of(&chunks(&bomb, 100_000)), None, "larger than any file");
    }
}
