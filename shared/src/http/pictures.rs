//! The pictures of events: JPEG files, which an operator sends and everybody is shown. The server reads a picture's header and
//! decodes nothing: the command and the operator's page have decoded and written it anew.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lambda_http::Request;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zune_core::bytestream::ZCursor;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use crate::http::checks::{Refusal, json_body};
use engine::domain::basics::bytes::Hash;
use engine::domain::sale::attachment::{Attachment, AttachmentKind, MAX_ATTACHMENT_BYTES};
use engine::domain::sale::event::{MAX_IMAGE_SIDE, Picture};
use engine::domain::sale::jpeg::check_bare;

/// Most bytes of a request that sends a picture: base64 is a third longer.
pub const MAX_PICTURE_BODY_BYTES: usize = MAX_ATTACHMENT_BYTES / 3 * 4 + 1024;

/// A picture that an operator sends.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a picture, which is an object")]
pub struct PictureBody {
    /// The JPEG file in base64: at most 256 KiB, each side at most 4,096 pixels, without metadata (EXIF, XMP, IPTC, comments,
    /// thumbnails) and without bytes after its end.
    pub data: String,
}

/// A picture that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PictureReply {
    /// The picture, as a sale file names it.
    #[serde(flatten)]
    pub picture: Picture,
    /// Its length in bytes.
    pub bytes: usize,
}

/// Reads a picture, and checks that it is what its path and its name say.
///
/// # Errors
/// Returns the first check that the request does not pass.
pub fn read(request: &Request, hash: Hash) -> Result<(Attachment, PictureReply), Refusal> {
    let PictureBody { data } = json_body(request, MAX_PICTURE_BODY_BYTES)?;
    let bytes = STANDARD.decode(data).map_err(|_| Refusal::invalid("data", "must be base64"))?;
    if bytes.len() > MAX_ATTACHMENT_BYTES {
        return Err(Refusal::invalid("data", "must be at most 262,144 bytes"));
    }
    let (width, height) = sides(&bytes).map_err(|rule| Refusal::invalid("data", rule))?;
    let attachment = Attachment::new(AttachmentKind::Jpeg, bytes);
    if attachment.hash() != hash {
        return Err(Refusal::invalid("data", "must have the SHA-256 of the path"));
    }
    let picture = Picture { sha256: hash, width, height };
    let bytes = attachment.bytes.len();
    Ok((attachment, PictureReply { picture, bytes }))
}

/// The width and the height of a JPEG file in pixels, by its header.
fn sides(bytes: &[u8]) -> Result<(u32, u32), String> {
    let longest = usize::try_from(MAX_IMAGE_SIDE).unwrap_or(usize::MAX);
    let options = DecoderOptions::default().set_max_width(longest).set_max_height(longest);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder
        .decode_headers()
        .map_err(|_| "must be a JPEG file of at most 4,096 by 4,096 pixels".to_owned())?;
    // Where it was taken, and by whom.
    check_bare(bytes).map_err(|defect| defect.to_string())?;
    let (width, height) = decoder.dimensions().unwrap_or_default();
    let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
    Ok((side(width), side(height)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A grey JPEG of 8 by 8 pixels, as small as one can be.
    const GREY: &str = "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z";

    fn sent(data: &str, hash: Hash) -> Result<PictureReply, Refusal> {
        let body = json!({ "data": data }).to_string();
        let request = lambda_http::http::Request::put("/pictures/x")
            .header("content-type", "application/json")
            .body(lambda_http::Body::from(body))
            .unwrap();
        read(&request, hash).map(|(_, reply)| reply)
    }

    #[test]
    fn a_picture_is_what_its_header_and_its_hash_say() {
        let bytes = STANDARD.decode(GREY).unwrap();
        let hash = Hash::of_parts(&[&bytes]);
        let reply = sent(GREY, hash).unwrap();
        assert_eq!((reply.picture.width, reply.picture.height, reply.bytes), (8, 8, bytes.len()));
        assert!(sent(GREY, Hash([0; 32])).is_err());
        let refused = |bytes: &[u8]| sent(&STANDARD.encode(bytes), Hash::of_parts(&[bytes]));
        let rule = |refused: Result<PictureReply, Refusal>| match refused {
            Err(Refusal::Invalid { at, rule }) if at == "data" => rule,
            other => panic!("{other:?}"),
        };
        for other in [b"".as_slice(), b"<svg onload=alert(1)>", b"\x89PNG\r\n\x1a\n", &bytes[..30]]
        {
            assert!(refused(other).is_err(), "{other:?}");
        }
        // The same, 65,535 by 8 pixels.
        let mut wide = bytes.clone();
        let frame = wide.windows(2).position(|marker| marker == [0xff, 0xc0]);
        let frame = frame.or_else(|| wide.windows(2).position(|marker| marker == [0xff, 0x0b]));
        if let Some(frame) = frame {
            wide[frame + 7..frame + 9].copy_from_slice(&[0xff, 0xff]);
            assert!(refused(&wide).is_err());
        }
        // The same with a place in its metadata.
        let exif = [&[0xff, 0xe1, 0, 16][..], b"Exif\0\0", b"II*\0\x08\0\0\0"].concat();
        let placed = [&bytes[..2], &exif, &bytes[2..]].concat();
        assert_eq!(rule(refused(&placed)), "must have no metadata (EXIF or XMP)");
        let iptc = [&[0xff, 0xed, 0, 20][..], b"Photoshop 3.0\08BIM"].concat();
        let named = [&bytes[..2], &iptc, &bytes[2..]].concat();
        assert_eq!(rule(refused(&named)), "must have no metadata (IPTC)");
        let remark = [&[0xff, 0xfe, 0, 6][..], b"home"].concat();
        let remarked = [&bytes[..2], &remark, &bytes[2..]].concat();
        assert_eq!(rule(refused(&remarked)), "must have no metadata (a comment)");
        let archive = [&bytes[..], b"PK\x03\x04"].concat();
        assert_eq!(rule(refused(&archive)), "must have nothing after the end of its picture");
        assert!(refused(&vec![0xff; MAX_ATTACHMENT_BYTES + 1]).is_err());
        assert!(sent("no base64!", hash).is_err());
    }
}
