//! Unpacks the bills that come packed, up to a size that is known before.

use std::io::{Cursor, Read};

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use encoding_rs::GBK;
use flate2::read::GzDecoder;
use zip::ZipArchive;

use crate::hex::to_hex;

/// The most bytes of a bill: some 400,000 trades. A function has room for it, for the same as text and for its lines.
pub(super) const MAX_BYTES: usize = 128 * 1024 * 1024;
/// The most files of an archive: there are two, and more if a bill is long.
const MAX_FILES: usize = 64;
/// The first line of a file that has a bill's sums.
const SUMMARY: &str = "#支付宝业务汇总";

/// Why a file cannot be unpacked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unpacked {
    /// It is cut off, or damaged: it may come whole the next time.
    #[error("the bill is damaged: {0}")]
    Damaged(String),
    /// It has more than is unpacked.
    #[error("the bill has more than {MAX_BYTES} bytes")]
    TooLarge,
}

fn damaged(error: impl ToString) -> Unpacked {
    Unpacked::Damaged(error.to_string())
}

/// Reads to the end, or to `most` bytes.
fn whole(reader: impl Read, most: usize) -> Result<Vec<u8>, Unpacked> {
    let mut bytes = Vec::new();
    let more = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(more).read_to_end(&mut bytes).map_err(damaged)?;
    if bytes.len() > most { Err(Unpacked::TooLarge) } else { Ok(bytes) }
}

/// What is in a file of gzip, if it hashes to `sha1`. What comes as it is, though it was asked for packed, is taken so.
pub(super) fn gzip(packed: &[u8], sha1: &str) -> Result<Vec<u8>, Unpacked> {
    let bytes = if packed.starts_with(&[0x1f, 0x8b]) {
        whole(GzDecoder::new(packed), MAX_BYTES)?
    } else {
        packed.to_vec()
    };
    let found = digest(&SHA1_FOR_LEGACY_USE_ONLY, &bytes);
    if to_hex(found.as_ref()).eq_ignore_ascii_case(sha1) {
        Ok(bytes)
    } else {
        Err(Unpacked::Damaged("it is not what its sum says".to_owned()))
    }
}

/// The files of an archive that have lines, in their order.
pub(super) fn zip(packed: &[u8]) -> Result<Vec<Vec<u8>>, Unpacked> {
    let mut archive = ZipArchive::new(Cursor::new(packed)).map_err(damaged)?;
    if archive.len() > MAX_FILES {
        return Err(Unpacked::TooLarge);
    }
    let (mut files, mut left) = (Vec::new(), MAX_BYTES);
    for place in 0..archive.len() {
        let file = archive.by_index(place).map_err(damaged)?;
        if file.is_dir() {
            continue;
        }
        let bytes = whole(file, left)?;
        left -= bytes.len();
        // Its name is in GBK, too; what it is, it says itself.
        let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        if !GBK.decode(first).0.starts_with(SUMMARY) {
            files.push(bytes);
        }
    }
    if files.is_empty() { Err(damaged("it has no lines")) } else { Ok(files) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut packer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in files {
            packer.start_file(*name, SimpleFileOptions::default()).unwrap();
            packer.write_all(bytes).unwrap();
        }
        packer.finish().unwrap().into_inner()
    }

    /// A sum of something else.
    const SUM: &str = "a5b2fa1a3e3bd1a8f5f3bb8ac4fa4fa2bbb8ffa2";

    #[test]
    fn a_bill_is_taken_whole_or_not_at_all() {
        let packed = gzipped(b"bill");
        assert!(matches!(gzip(&packed, SUM), Err(Unpacked::Damaged(_))));
        let sum: String = digest(&SHA1_FOR_LEGACY_USE_ONLY, b"bill")
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect();
        assert_eq!(gzip(&packed, &sum), Ok(b"bill".to_vec()));
        assert_eq!(gzip(b"bill", &sum), Ok(b"bill".to_vec()), "not packed");
        assert!(matches!(gzip(&packed[..packed.len() - 9], &sum), Err(Unpacked::Damaged(_))));
    }

    #[test]
    fn what_unpacks_to_more_than_a_bill_is_broken_off() {
        let bomb = vec![0; MAX_BYTES + 1];
        assert_eq!(gzip(&gzipped(&bomb), SUM), Err(Unpacked::TooLarge));
        let half = &bomb[..MAX_BYTES / 2 + 1];
        assert_eq!(zip(&zipped(&[("a", half), ("b", half)])), Err(Unpacked::TooLarge));
        let many: Vec<(String, &[u8])> =
            (0..=MAX_FILES).map(|file| (file.to_string(), b"x".as_slice())).collect();
        let many: Vec<(&str, &[u8])> = many.iter().map(|(name, file)| (&**name, *file)).collect();
        assert_eq!(zip(&zipped(&many)), Err(Unpacked::TooLarge));
    }

    #[test]
    fn an_archive_has_files_with_lines_and_one_with_sums() {
        let sums = GBK.encode("#支付宝业务汇总查询\r\n").0.into_owned();
        let lines = GBK.encode("#支付宝业务明细查询\r\n").0.into_owned();
        let packed = zipped(&[("sums.csv", &sums), ("1.csv", &lines), ("2.csv", &lines)]);
        assert_eq!(zip(&packed), Ok(vec![lines.clone(), lines]));
        assert!(matches!(zip(&zipped(&[("sums.csv", &sums)])), Err(Unpacked::Damaged(_))));
        for cut in [0, 4, packed.len() / 2, packed.len() - 1] {
            assert!(matches!(zip(&packed[..cut]), Err(Unpacked::Damaged(_))), "{cut}");
        }
    }
}
