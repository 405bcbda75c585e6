//! The pictures of a sale file: read from a folder, decoded and written anew in bounded size, so that nothing of a file but its
//! pixels reaches anybody.
//!
//! In the document of an event a picture has its SHA-256, its width and its height; or `file`, the name of a file in the
//! folder, in place of the three. A file that is found by its SHA-256 cannot be written anew, as it would get another: it
//! must be in the form in which others are written.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Component, Path, PathBuf};

use engine::domain::basics::bytes::Hash;
use engine::domain::sale::attachment::{Attachment, AttachmentKind, MAX_ATTACHMENT_BYTES};
use engine::domain::sale::event::MAX_IMAGE_SIDE;
use engine::domain::sale::jpeg::check_bare;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{
    DynamicImage, GenericImageView as _, ImageDecoder as _, ImageFormat, ImageReader, RgbImage,
    Rgba,
};
use serde_json::{Value, json};

use super::{Error, read_bounded};

/// Most pixels of a picture that is read: a camera's 50 million.
const MAX_PIXELS: u64 = 50_000_000;
/// The longest side of a picture that is written, in pixels.
const MAX_SIDE: u32 = 1600;
/// The qualities that a picture is written in, until it is short enough.
const QUALITIES: [u8; 5] = [85, 75, 65, 50, 35];

/// Why a picture cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] Error),
    /// It is no picture that is taken.
    #[error("{path}: {why}")]
    Refused {
        /// The file.
        path: String,
        /// What is wrong with it, in words.
        why: String,
    },
}

fn refused(path: &Path, why: impl Into<String>) -> PictureError {
    PictureError::Refused { path: path.display().to_string(), why: why.into() }
}

/// The pictures that a sale file names and that are in `folder`, as they are kept: JPEG files of at most 256 KiB. What the file
/// says by name it then says by hash.
///
/// # Errors
/// Fails on a name that leads out of the folder, on a file that cannot be read, on one that is no JPEG, PNG or WebP
/// picture of at most 50 million pixels, and on one that is named by its hash and has more than its picture in it, such as
/// EXIF.
pub fn of_sale_file(file: &mut Value, folder: &Path) -> Result<Vec<Attachment>, PictureError> {
    let images = file.pointer_mut("/event/about/images").and_then(Value::as_array_mut);
    let mut found = BTreeMap::new();
    let mut named: Vec<Hash> = Vec::new();
    for image in images.into_iter().flatten() {
        let Some(fields) = image.as_object_mut() else { continue };
        match fields.remove("file") {
            Some(name) => {
                let path = inside(folder, &name)?;
                let (picture, width, height) = written_anew(&path)?;
                let said = [
                    ("sha256", json!(picture.hash())),
                    ("width", json!(width)),
                    ("height", json!(height)),
                ];
                fields.extend(said.map(|(field, value)| (field.to_owned(), value)));
                found.insert(picture.hash(), picture);
            }
            None => {
                let hash = fields.get("sha256").and_then(Value::as_str);
                named.extend(hash.and_then(|hash| hash.parse::<Hash>().ok()));
            }
        }
    }
    let own = file.pointer("/event/picture/sha256").and_then(Value::as_str);
    named.extend(own.and_then(|hash| hash.parse::<Hash>().ok()));
    named.retain(|hash| !found.contains_key(hash));
    if !named.is_empty() {
        for (path, picture) in kept_in(folder)? {
            if named.contains(&picture.hash()) {
                check_kept(&path, &picture)?;
                found.insert(picture.hash(), picture);
            }
        }
    }
    Ok(found.into_values().collect())
}

/// The path of a name in a folder, which it does not lead out of.
fn inside(folder: &Path, name: &Value) -> Result<PathBuf, PictureError> {
    let name = Path::new(name.as_str().unwrap_or_default());
    let is_plain = name.components().all(|part| matches!(part, Component::Normal(_)));
    if name.as_os_str().is_empty() || !is_plain {
        return Err(refused(name, "must be the name of a file in the folder of the pictures"));
    }
    Ok(folder.join(name))
}

/// Checks that a file which is sent as it is has the form of what [`written_anew`] gives: a picture that can be decoded, and
/// nothing else.
fn check_kept(path: &Path, picture: &Attachment) -> Result<(), PictureError> {
    let anew = |why: String| {
        refused(
            path,
            format!("{why}; name it by \"file\" in place of \"sha256\" to have it written anew"),
        )
    };
    check_bare(&picture.bytes).map_err(|defect| anew(defect.to_string()))?;
    let reader = ImageReader::with_format(Cursor::new(&picture.bytes), ImageFormat::Jpeg);
    let decoder = reader.into_decoder().map_err(|error| anew(error.to_string()))?;
    let (width, height) = decoder.dimensions();
    if width.max(height) > MAX_IMAGE_SIDE {
        return Err(anew("each side must have at most 4,096 pixels".to_owned()));
    }
    DynamicImage::from_decoder(decoder).map(drop).map_err(|error| anew(error.to_string()))
}

/// The short JPEG files of a folder with their paths, as they are; none if there is no such folder.
fn kept_in(folder: &Path) -> Result<Vec<(PathBuf, Attachment)>, PictureError> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let is_jpeg = |path: &PathBuf| path.extension().is_some_and(|it| it == "jpg" || it == "jpeg");
    let mut kept = Vec::new();
    for path in paths.filter(is_jpeg) {
        let bytes = read_bounded(&path)?;
        if bytes.len() <= MAX_ATTACHMENT_BYTES {
            kept.push((path, Attachment::new(AttachmentKind::Jpeg, bytes)));
        }
    }
    Ok(kept)
}

/// A picture, upright and small enough, with its width and its height.
fn written_anew(path: &Path) -> Result<(Attachment, u32, u32), PictureError> {
    let bytes = read_bounded(path)?;
    let unreadable = |error: image::ImageError| refused(path, error.to_string());
    let reader = ImageReader::new(Cursor::new(&bytes)).with_guessed_format();
    let reader = reader.map_err(|error| refused(path, error.to_string()))?;
    let is_taken = |format: ImageFormat| {
        [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::WebP].contains(&format)
    };
    if !reader.format().is_some_and(is_taken) {
        return Err(refused(path, "must be a JPEG, PNG or WebP picture"));
    }
    let mut decoder = reader.into_decoder().map_err(unreadable)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(refused(path, "must have at most 50 million pixels"));
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut picture = DynamicImage::from_decoder(decoder).map_err(unreadable)?;
    picture.apply_orientation(orientation);
    if picture.width().max(picture.height()) > MAX_SIDE {
        picture = picture.resize(MAX_SIDE, MAX_SIDE, FilterType::Lanczos3);
    }
    let opaque = on_white(&picture);
    for quality in QUALITIES {
        let mut written = Vec::new();
        let encoder = JpegEncoder::new_with_quality(&mut written, quality);
        opaque.write_with_encoder(encoder).map_err(unreadable)?;
        if written.len() <= MAX_ATTACHMENT_BYTES {
            let attachment = Attachment::new(AttachmentKind::Jpeg, written);
            return Ok((attachment, opaque.width(), opaque.height()));
        }
    }
    Err(refused(path, "has too much detail for 256 KiB"))
}

/// The picture on white, where it can be seen through: JPEG has no transparency.
fn on_white(picture: &DynamicImage) -> RgbImage {
    let (width, height) = picture.dimensions();
    let through = |channel: u8, alpha: u8| {
        let mixed = (u32::from(channel) * u32::from(alpha) + 255 * (255 - u32::from(alpha))) / 255;
        u8::try_from(mixed).unwrap_or(u8::MAX)
    };
    let rgba = picture.to_rgba8();
    RgbImage::from_fn(width, height, |x, y| {
        let Rgba([red, green, blue, alpha]) = *rgba.get_pixel(x, y);
        image::Rgb([red, green, blue].map(|channel| through(channel, alpha)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sale(images: Value) -> Value {
        json!({ "event": { "about": { "images": images } } })
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        let picture = DynamicImage::new_rgba8(width, height);
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, ImageFormat::Png).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn a_picture_is_written_anew_and_named_by_its_hash() {
        let folder = std::env::temp_dir().join(format!("onsale-pictures-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("wide.png"), png(3200, 20)).unwrap();
        let mut file = sale(json!([{ "file": "wide.png", "alt": "x" }]));
        let kept = of_sale_file(&mut file, &folder).unwrap();
        let image = &file["event"]["about"]["images"][0];
        assert_eq!((&image["width"], &image["height"]), (&json!(1600), &json!(10)));
        assert_eq!(image["sha256"], json!(kept[0].hash()));
        assert_eq!(image.get("file"), None);
        let read = image::load_from_memory(&kept[0].bytes).unwrap().to_rgb8();
        assert!(read.get_pixel(0, 0).0.iter().all(|channel| *channel > 250), "it lies on white");
        // As it was written it is found by its hash, and not written again.
        std::fs::write(folder.join("kept.jpg"), &kept[0].bytes).unwrap();
        assert_eq!(of_sale_file(&mut file, &folder).unwrap(), kept);

        std::fs::write(folder.join("drawn.png"), b"<svg onload=alert(1)/>").unwrap();
        // A header alone, of 8,000 by 8,000 pixels.
        let mut huge = png(1, 1);
        huge[16..24].copy_from_slice(&[0, 0, 0x1f, 0x40, 0, 0, 0x1f, 0x40]);
        let sum = crc(&huge[12..29]);
        huge[29..33].copy_from_slice(&sum.to_be_bytes());
        std::fs::write(folder.join("huge.png"), huge).unwrap();
        for (name, why) in [
            ("drawn.png", "must be a JPEG, PNG or WebP"),
            ("huge.png", "50 million pixels"),
            ("none.png", "none.png"),
            ("../wide.png", "in the folder"),
            ("/etc/passwd", "in the folder"),
            ("", "in the folder"),
        ] {
            let mut file = sale(json!([{ "file": name, "alt": "x" }]));
            let error = of_sale_file(&mut file, &folder).unwrap_err().to_string();
            assert!(error.contains(why), "{name}: {error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
        // Nothing is asked of a folder that is not there.
        let mut file = sale(json!([{ "sha256": Hash([1; 32]), "alt": "x" }]));
        assert!(of_sale_file(&mut file, &folder).unwrap().is_empty());
    }

    #[test]
    fn what_is_named_by_its_hash_has_nothing_but_its_picture() {
        let folder = std::env::temp_dir().join(format!("onsale-kept-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("plain.png"), png(32, 20)).unwrap();
        let mut file = sale(json!([{ "file": "plain.png", "alt": "x" }]));
        let own = of_sale_file(&mut file, &folder).unwrap().remove(0).bytes;
        let with = |marker: u8, content: &[u8]| {
            let length = u8::try_from(content.len() + 2).unwrap();
            [&own[..2], &[0xff, marker, 0, length], content, &own[2..]].concat()
        };
        // The frame of a picture whose coded bytes are missing.
        let scan = own.windows(2).position(|pair| pair == [0xff, 0xda]).unwrap();
        let cut = [&own[..scan + 2], &[0, 2, 0xff, 0xd9]].concat();
        for (bytes, why) in [
            (with(0xe1, b"Exif\0\0II*\0\x08\0\0\0\0\0"), "no metadata (EXIF or XMP)"),
            (with(0xed, b"Photoshop 3.0\0"), "no metadata (IPTC)"),
            (with(0xfe, b"taken at home"), "no metadata (a comment)"),
            ([&own[..], b"PK"].concat(), "nothing after the end"),
            (own[..own.len() - 2].to_vec(), "a whole JPEG file"),
            (cut, "kept.jpg"),
        ] {
            std::fs::write(folder.join("kept.jpg"), &bytes).unwrap();
            let mut file = sale(json!([{ "sha256": Hash::of_parts(&[&bytes]), "alt": "x" }]));
            let error = of_sale_file(&mut file, &folder).unwrap_err().to_string();
            assert!(error.contains(why), "{why}: {error}");
            assert!(error.contains("kept.jpg") && error.contains("\"file\""), "{error}");
            // Named by its file, it is written anew, if it can be decoded.
            let mut file = sale(json!([{ "file": "kept.jpg", "alt": "x" }]));
            for anew in of_sale_file(&mut file, &folder).unwrap_or_default() {
                assert_eq!(check_bare(&anew.bytes), Ok(()));
            }
            // What the sale does not name is nobody's matter.
            assert!(of_sale_file(&mut sale(json!([])), &folder).unwrap().is_empty());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_pictures_of_the_samples_are_in_that_form() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sales/pictures");
        let kept = kept_in(&folder).unwrap();
        assert!(kept.len() > 5, "{} pictures", kept.len());
        for (path, picture) in kept {
            check_kept(&path, &picture).unwrap();
        }
    }

    /// The check of a PNG chunk.
    fn crc(bytes: &[u8]) -> u32 {
        let step = |sum: u32, _: u32| if sum & 1 == 1 { 0xedb8_8320 ^ sum >> 1 } else { sum >> 1 };
        let byte = |sum: u32, byte: &u8| (0..8).fold(sum ^ u32::from(*byte), step);
        !bytes.iter().fold(u32::MAX, byte)
    }
}
