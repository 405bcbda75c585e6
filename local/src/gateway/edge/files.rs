//! The files of the built pages: read when they are asked for, kept until they change.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use aws_lc_rs::digest;
use axum::body::{Body, Bytes};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use shared::hex::to_hex;

/// Fewest bytes of a text that is compressed, as in a distribution.
/// Source: <https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/ServingCompressedFiles.html>
const MIN_COMPRESSED_BYTES: usize = 1000;
/// Most bytes of a file that is served.
const MAX_BYTES: u64 = 10_000_000;

#[derive(Debug)]
pub(super) struct File {
    pub(super) content_type: &'static str,
    pub(super) bytes: Bytes,
    gzip: Option<Bytes>,
    etag: String,
}

impl File {
    /// A file with these bytes.
    pub(super) fn new(name: &str, bytes: Vec<u8>) -> Self {
        let content_type = content_type(name);
        let is_text = !content_type.starts_with("image/png") && content_type != OCTETS;
        let worth_it = is_text && bytes.len() >= MIN_COMPRESSED_BYTES;
        let gzip = if worth_it { compressed(&bytes).ok() } else { None };
        let hash = digest::digest(&digest::SHA256, &bytes);
        let etag = to_hex(&hash.as_ref()[..16]);
        Self { content_type, bytes: bytes.into(), gzip, etag }
    }

    /// The answer with this file, or that it has not changed.
    pub(super) fn answer(
        &self,
        asked: &HeaderMap,
        status: StatusCode,
        caching: &'static str,
    ) -> Response {
        let zipped = self.gzip.as_ref().filter(|_| accepts_gzip(asked));
        // The same text in another coding is the same by its meaning only.
        let etag = match zipped {
            Some(_) => format!("W/\"{}\"", self.etag),
            None => format!("\"{}\"", self.etag),
        };
        let is_known = status == StatusCode::OK && self.is_known(asked);
        let body = match (is_known, zipped) {
            (true, _) => Body::empty(),
            (false, Some(zipped)) => Body::from(zipped.clone()),
            (false, None) => Body::from(self.bytes.clone()),
        };
        let mut response = Response::new(body);
        *response.status_mut() = if is_known { StatusCode::NOT_MODIFIED } else { status };
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
        if let Ok(etag) = HeaderValue::from_str(&etag) {
            headers.insert(ETAG, etag);
        }
        if self.gzip.is_some() {
            headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        }
        if !is_known {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
            if zipped.is_some() {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
        }
        response
    }

    /// True if whoever asks has it: one of the tags in `If-None-Match` is its own.
    fn is_known(&self, asked: &HeaderMap) -> bool {
        let tags = asked.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        tags.flat_map(|tags| tags.split(',')).map(str::trim).any(|tag| {
            let tag = tag.strip_prefix("W/").unwrap_or(tag);
            tag == "*" || tag.trim_matches('"') == self.etag
        })
    }
}

const OCTETS: &str = "application/octet-stream";

/// The content type of a file by its name.
fn content_type(name: &str) -> &'static str {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "txt" => "text/plain; charset=utf-8",
        "png" => "image/png",
        _ => OCTETS,
    }
}

fn compressed(bytes: &[u8]) -> io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish().map(Bytes::from)
}

/// True if `Accept-Encoding` takes gzip.
fn accepts_gzip(asked: &HeaderMap) -> bool {
    let lists = asked.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight = parts.find_map(|part| part.strip_prefix("q=")).unwrap_or("1");
        is_gzip && weight.parse::<f32>().is_ok_and(|weight| weight > 0.0)
    })
}

/// The files below a directory, by their paths in it.
#[derive(Debug)]
pub(super) struct Files {
    root: PathBuf,
    kept: Mutex<HashMap<String, Kept>>,
}

#[derive(Debug)]
struct Kept {
    stamp: Stamp,
    file: Arc<File>,
}

/// By what a changed file is noticed.
type Stamp = (Option<SystemTime>, u64);

impl Files {
    /// Those of a directory, which may come later.
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), kept: Mutex::default() }
    }

    /// The file at a path of plain names; `None` if there is none, or if it leads out of the directory.
    pub(super) fn get(&self, path: &str) -> Option<Arc<File>> {
        if !is_plain(path) {
            return None;
        }
        let root = self.root.canonicalize().ok()?;
        let place = root.join(path).canonicalize().ok()?;
        if !place.starts_with(&root) {
            return None;
        }
        let metadata = fs::metadata(&place).ok()?;
        if !metadata.is_file() || metadata.len() > MAX_BYTES {
            return None;
        }
        let stamp = stamp(&metadata);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get(path).filter(|known| known.stamp == stamp) {
            return Some(Arc::clone(&known.file));
        }
        let file = Arc::new(File::new(path, read(&place).ok()?));
        kept.insert(path.to_owned(), Kept { stamp, file: Arc::clone(&file) });
        Some(file)
    }
}

fn stamp(metadata: &Metadata) -> Stamp {
    (metadata.modified().ok(), metadata.len())
}

fn read(place: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    fs::File::open(place)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// True if every segment of a path is a name of letters, digits, `.`, `_` and `-` that begins with none of the
/// signs: nothing encoded, nothing hidden, no way up.
fn is_plain(path: &str) -> bool {
    let is_name = |name: &str| {
        let is_sign = |byte: u8| b"._-".contains(&byte);
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || is_sign(byte);
        name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
            && name.bytes().all(is_good)
    };
    path.split('/').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: http::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn only_plain_names_are_paths() {
        for plain in ["index.html", "404.html", "assets/main-ABC_1.js", "a/b/c"] {
            assert!(is_plain(plain), "{plain}");
        }
        for wrong in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../x",
            "a/../b",
            "a/..",
            ".git",
            "a/.hidden",
            "a//b",
            "a/",
            "%2e%2e/x",
            "a%2fb",
            "a\\b",
            "..\\x",
            "a\0b",
            "a b",
            "ä",
            "-x",
            "C:/x",
            "a?b",
        ] {
            assert!(!is_plain(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn nothing_outside_the_directory_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let (root, secret) = (dir.path().join("dist"), dir.path().join("secret.txt"));
        fs::create_dir_all(root.join("assets")).unwrap();
        fs::write(&secret, "secret").unwrap();
        fs::write(root.join("assets/a.js"), "1").unwrap();
        std::os::unix::fs::symlink(&secret, root.join("assets/link.txt")).unwrap();
        std::os::unix::fs::symlink(dir.path(), root.join("assets/up")).unwrap();
        std::os::unix::fs::symlink(root.join("assets/a.js"), root.join("assets/b.js")).unwrap();
        let files = Files::new(&root);
        let text = |path: &str| files.get(path).map(|file| file.bytes.clone());
        assert_eq!(text("assets/a.js").unwrap(), "1");
        assert_eq!(text("assets/b.js").unwrap(), "1", "a link within the directory");
        for path in ["assets", "assets/link.txt", "assets/up/secret.txt", "../secret.txt", "no.js"]
        {
            assert_eq!(text(path), None, "{path}");
        }
        let absolute = secret.to_str().unwrap();
        assert_eq!(text(absolute), None);
    }

    #[test]
    fn a_file_that_changes_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::new(dir.path());
        assert!(files.get("index.html").is_none());
        fs::write(dir.path().join("index.html"), "one").unwrap();
        let first = files.get("index.html").unwrap();
        assert!(Arc::ptr_eq(&first, &files.get("index.html").unwrap()));
        fs::write(dir.path().join("index.html"), "other").unwrap();
        let second = files.get("index.html").unwrap();
        assert_eq!(second.bytes, "other");
        assert_ne!(first.etag, second.etag);
    }

    #[test]
    fn text_is_compressed_for_those_who_take_it() {
        let text = "the same again ".repeat(100);
        let file = File::new("index.html", text.clone().into_bytes());
        let ok = StatusCode::OK;
        let zipped = file.answer(&asked(ACCEPT_ENCODING, "br, gzip;q=0.5"), ok, "no-cache");
        assert_eq!(zipped.headers()[CONTENT_ENCODING], "gzip");
        assert!(zipped.headers()[ETAG].to_str().unwrap().starts_with("W/"));
        for refused in ["", "br", "gzip;q=0", "x-gzip"] {
            let plain = file.answer(&asked(ACCEPT_ENCODING, refused), ok, "no-cache");
            assert!(!plain.headers().contains_key(CONTENT_ENCODING), "{refused}");
            assert_eq!(plain.headers()[VARY], "accept-encoding");
        }
        let small = File::new("a.js", b"1".to_vec());
        assert!(small.gzip.is_none());
        let picture = File::new("a.png", text.into_bytes());
        assert!(picture.gzip.is_none() && picture.content_type == "image/png");
    }

    #[test]
    fn who_has_the_file_is_told_so() {
        let file = File::new("index.html", b"text".to_vec());
        let etag =
            file.answer(&HeaderMap::new(), StatusCode::OK, "no-cache").headers()[ETAG].clone();
        let again = |value: &str, status| {
            let value = HeaderValue::from_str(value).unwrap();
            file.answer(&HeaderMap::from_iter([(IF_NONE_MATCH, value)]), status, "no-cache")
                .status()
        };
        let etag = etag.to_str().unwrap();
        for known in [etag.to_owned(), format!("\"x\", W/{etag}"), "*".to_owned()] {
            assert_eq!(again(&known, StatusCode::OK), StatusCode::NOT_MODIFIED, "{known}");
            assert_eq!(again(&known, StatusCode::NOT_FOUND), StatusCode::NOT_FOUND);
        }
        assert_eq!(again("\"x\"", StatusCode::OK), StatusCode::OK);
    }
}
