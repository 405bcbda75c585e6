//! What a JPEG file has beside its picture: where it was taken, by whom, with what remarks. A picture that everybody is shown has
//! none of it. Only the file's frame is read, and nothing is decoded.
//!
//! Source: ITU-T T.81, annex B (markers and segments); which segments say what: Exif 2.32 and XMP part 3 (APP1), ICC.1 annex B.4
//! (APP2), Adobe's Photoshop resources with IPTC (APP13), Adobe TN 5116 (APP14), JFIF 1.02 (APP0).

/// Why a JPEG file is not kept as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JpegDefect {
    /// Its bytes are no JPEG file, or end before its picture.
    #[error("must be a whole JPEG file")]
    NotWhole,
    /// It says more than its picture: Exif or XMP, IPTC, a comment, a thumbnail, or what only a program knows.
    #[error("must have no metadata ({0})")]
    Metadata(&'static str),
    /// Bytes follow its end.
    #[error("must have nothing after the end of its picture")]
    AfterEnd,
}

/// Checks that a JPEG file has its picture and nothing else: besides the tables and scans of the picture only its JFIF header, its
/// colour profile and Adobe's mark of how colours are coded.
///
/// # Errors
/// Returns the first defect in the order of the bytes.
pub fn check_bare(bytes: &[u8]) -> Result<(), JpegDefect> {
    let mut rest = bytes.strip_prefix(&[0xff, 0xd8]).ok_or(JpegDefect::NotWhole)?;
    let mut scans = 0_usize;
    loop {
        let (marker, after) = next_marker(rest).ok_or(JpegDefect::NotWhole)?;
        if marker == END {
            let is_whole = scans > 0;
            return match (is_whole, after.is_empty()) {
                (false, _) => Err(JpegDefect::NotWhole),
                (true, false) => Err(JpegDefect::AfterEnd),
                (true, true) => Ok(()),
            };
        }
        let (content, after) = segment(after).ok_or(JpegDefect::NotWhole)?;
        if let Some(named) = metadata(marker, content) {
            return Err(JpegDefect::Metadata(named));
        }
        rest = after;
        if marker == SCAN {
            scans += 1;
            rest = after_scan(rest);
        }
    }
}

/// The marker of the end of a picture.
const END: u8 = 0xd9;
/// The marker of a scan.
const SCAN: u8 = 0xda;

/// The marker at which the bytes begin, and what follows it. Any number of fill bytes stands before a marker.
fn next_marker(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let rest = bytes.strip_prefix(&[0xff])?;
    let fill = rest.iter().take_while(|byte| **byte == 0xff).count();
    let (marker, after) = rest.get(fill..)?.split_first()?;
    (*marker != 0).then_some((*marker, after))
}

/// The content of a segment, which begins with its length in two bytes, and what follows it.
fn segment(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, _) = bytes.split_first_chunk::<2>()?;
    let (segment, after) = bytes.split_at_checked(u16::from_be_bytes(*length).into())?;
    Some((segment.get(2..)?, after))
}

/// What follows the coded bytes of a scan: in them 0xff stands before 0 or the marker of a restart (0xd0 to 0xd7).
fn after_scan(bytes: &[u8]) -> &[u8] {
    let is_marker =
        |pair: &[u8]| pair[0] == 0xff && pair[1] != 0 && !(0xd0..=0xd7).contains(&pair[1]);
    let at = bytes.windows(2).position(is_marker).unwrap_or(bytes.len());
    bytes.get(at..).unwrap_or_default()
}

/// What a segment says besides the picture, by its marker and its content; `None` if nothing.
fn metadata(marker: u8, content: &[u8]) -> Option<&'static str> {
    match marker {
        0xe0 if content.starts_with(b"JFIF\0") && content.len() == JFIF_BYTES => None,
        0xe0 => Some("a thumbnail"),
        0xe1 => Some("EXIF or XMP"),
        0xe2 if content.starts_with(b"ICC_PROFILE\0") => None,
        0xed => Some("IPTC"),
        0xee if content.starts_with(b"Adobe") && content.len() == ADOBE_BYTES => None,
        0xe2..=0xef => Some("of a program"),
        0xfe => Some("a comment"),
        _ => None,
    }
}

/// Bytes of a JFIF header without a thumbnail, without its length.
const JFIF_BYTES: usize = 14;
/// Bytes of Adobe's mark, without its length.
const ADOBE_BYTES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment of a marker.
    fn part(marker: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len() + 2).unwrap().to_be_bytes();
        [&[0xff, marker], &length[..], content].concat()
    }

    fn jfif() -> Vec<u8> {
        part(0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0")
    }

    /// A file of these parts: between the beginning and a scan with a restart and a coded 0xff.
    fn file(parts: &[Vec<u8>]) -> Vec<u8> {
        let scan = [part(SCAN, &[1, 1, 0, 0, 63, 0]), vec![7, 0xff, 0, 9, 0xff, 0xd0, 8]].concat();
        [vec![0xff, 0xd8], parts.concat(), scan, vec![0xff, END]].concat()
    }

    #[test]
    fn a_picture_alone_is_kept() {
        let tables = [part(0xdb, &[0; 65]), part(0xc0, &[8, 0, 8, 0, 8, 1, 1, 0x11, 0])];
        let colours = part(0xe2, b"ICC_PROFILE\0\x01\x01profile");
        let adobe = part(0xee, b"Adobe\0\x64\0\0\0\0\x01");
        for parts in [vec![], vec![jfif()], vec![jfif(), colours, adobe]] {
            assert_eq!(check_bare(&file(&[parts, tables.to_vec()].concat())), Ok(()));
        }
        // Several scans, as of a progressive picture, with tables between them and fill bytes before a marker.
        let mut progressive = file(&tables);
        progressive.truncate(progressive.len() - 2);
        progressive.extend([part(0xc4, &[0; 17]), vec![0xff, 0xff]].concat());
        progressive.extend(&part(SCAN, &[1, 1, 0, 1, 5, 0])[1..]);
        progressive.extend([4, 4, 0xff, 0xff, END]);
        assert_eq!(check_bare(&progressive), Ok(()));
    }

    #[test]
    fn what_says_more_than_a_picture_is_named() {
        for (part, named) in [
            (part(0xe1, b"Exif\0\0II*\0"), "EXIF or XMP"),
            (part(0xe1, b"http://ns.adobe.com/xap/1.0/\0<x/>"), "EXIF or XMP"),
            (part(0xed, b"Photoshop 3.0\08BIM\x04\x04"), "IPTC"),
            (part(0xfe, b"taken at home"), "a comment"),
            (part(0xfe, b""), "a comment"),
            (part(0xe0, b"JFXX\0\x10"), "a thumbnail"),
            (part(0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\x01\x01abc"), "a thumbnail"),
            (part(0xe2, b"MPF\0"), "of a program"),
            (part(0xee, b"Adobe at home, last summer"), "of a program"),
            (part(0xef, b""), "of a program"),
        ] {
            let defect = Err(JpegDefect::Metadata(named));
            assert_eq!(check_bare(&file(&[jfif(), part.clone()])), defect, "{part:x?}");
            // Behind a scan, too.
            let mut behind = file(&[jfif()]);
            let end = behind.split_off(behind.len() - 2);
            behind.extend([part.clone(), end].concat());
            assert_eq!(check_bare(&behind), defect, "{part:x?}");
        }
    }

    #[test]
    fn a_picture_ends_where_its_file_ends() {
        let whole = file(&[jfif()]);
        for after in [&b"\n"[..], &whole, b"PK\x03\x04"] {
            let defect = Err(JpegDefect::AfterEnd);
            assert_eq!(check_bare(&[&whole, after].concat()), defect, "{after:x?}");
        }
        for end in 0..whole.len() {
            assert_eq!(check_bare(&whole[..end]), Err(JpegDefect::NotWhole), "{end} bytes");
        }
        for none in [&b"<svg/>"[..], b"\x89PNG\r\n\x1a\n", &[0xff, 0xd8, 0xff, END], &[0xff; 64]] {
            assert_eq!(check_bare(none), Err(JpegDefect::NotWhole), "{none:x?}");
        }
    }
}
