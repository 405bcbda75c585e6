//! Bodies: their type, their size, their encoding, their JSON.

use super::Expected::{Fine, Problem};
use super::request::Raw;
use super::{Case, Fixture, case};

impl Fixture {
    /// Alice asks for an admission.
    fn ask(&self, sale: &str, body: impl AsRef<[u8]>) -> Raw {
        Raw::new("POST", format!("/sales/{sale}/admissions")).bearer(&self.alice).json(body)
    }

    /// Bodies of a request for an admission.
    pub(super) fn bodies(&self) -> Vec<Case> {
        let malformed = Problem(400, "malformed");
        let invalid = Problem(422, "invalid");
        let media = Problem(415, "unsupported-media-type");
        let large = Problem(413, "too-large");
        let two = r#"{"tickets":2}"#;
        let typed = |content_type: &str| {
            let post = Raw::new("POST", "/sales/hall/admissions").bearer(&self.alice);
            post.header("Content-Type", content_type).body(two)
        };
        let bare = Raw::new("POST", "/sales/hall/admissions").bearer(&self.alice);
        let deep = |open: &str, count| open.repeat(count);
        let utf16: Vec<u8> = two.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let zipped =
            b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xabV*\xc9L\xceN-)V\xb22\xaa\x05\x00";
        let padded = |bytes: usize| format!("{two}{}", " ".repeat(bytes - two.len()));
        let mut cases = vec![
            case("type: none", bare.clone().body(two), media),
            case("type: text", typed("text/plain"), media),
            case("type: a form", typed("application/x-www-form-urlencoded"), media),
            case("type: multipart", typed("multipart/form-data; boundary=x"), media),
            case("type: another JSON", typed("application/json-seq"), media),
            case(
                "type: two",
                typed("application/json").header("Content-Type", "text/plain"),
                media,
            ),
            case(
                "type: not text",
                bare.clone().header("Content-Type", b"application/j\xffson").body(two),
                media,
            ),
            case("body: 64 KiB and one", self.ask("hall", padded(64 * 1024 + 1)), large),
            case("body: 6 MB and one", self.ask("hall", padded(6 * 1024 * 1024 + 1)), large),
            case("body: none", bare.header("Content-Type", "application/json"), malformed),
            case("body: UTF-16", self.ask("hall", utf16), malformed),
            case(
                "body: gzip",
                self.ask("hall", zipped).header("Content-Encoding", "gzip"),
                malformed,
            ),
            case("body: BOM", self.ask("hall", format!("\u{feff}{two}")), malformed),
            case("body: bad UTF-8", self.ask("hall", b"{\"tick\xffets\":2}"), malformed),
            case("body: 10,000 lists", self.ask("hall", deep("[", 10_000)), invalid),
            case("body: 10,000 objects", self.ask("hall", deep("{\"a\":", 10_000)), invalid),
            case(
                "body: 10,000 lists deep down",
                self.ask("hall", format!("{{\"tickets\":{}", deep("[", 10_000))),
                invalid,
            ),
        ];
        for text in [
            "   ",
            "{",
            "}",
            "{\"tickets\":",
            "{\"tickets\":2,}",
            "{'tickets':2}",
            "{tickets:2}",
            "{\"tickets\":2}x",
            "{\"tickets\":2}{\"tickets\":2}",
            "{\"tickets\":NaN}",
            "{\"tickets\":Infinity}",
            "{\"tickets\":02}",
            "{\"tickets\":+2}",
            "{\"tickets\":0x2}",
            "{\"tickets\":1e400}",
            "{\"tickets\":2/*two*/}",
            "tickets=2",
            "{\"tickets\":\"\\ud800\"}",
            "{\"\\ud800\":2}",
            "{\"a\tb\":2}",
            "<tickets>2</tickets>",
            "\0",
        ] {
            cases.push(case(&format!("body: {text:?}"), self.ask("hall", text), malformed));
        }
        for text in [
            "null",
            "true",
            "2",
            "\"2\"",
            "[]",
            "[2]",
            "[{\"tickets\":2}]",
            "{}",
            "{\"tickets\":null}",
            "{\"tickets\":true}",
            "{\"tickets\":\"2\"}",
            "{\"tickets\":[2]}",
            "{\"tickets\":{}}",
            "{\"tickets\":2.0}",
            "{\"tickets\":2.5}",
            "{\"tickets\":2e0}",
            "{\"tickets\":-0}",
            "{\"tickets\":-1}",
            "{\"tickets\":0}",
            "{\"tickets\":5}",
            "{\"tickets\":65536}",
            "{\"tickets\":65538}",
            "{\"tickets\":4294967298}",
            "{\"tickets\":9223372036854775808}",
            "{\"tickets\":18446744073709551616}",
            "{\"tickets\":2,\"tickets\":2}",
            "{\"tickets\":2,\"\\u0074ickets\":1}",
            "{\"Tickets\":2}",
            "{\"tickets \":2}",
            "{\"tickets\":2,\"user\":\"bob\"}",
            "{\"tickets\":2,\"__proto__\":{}}",
            "{\"tickets\":2,\"\":0}",
            "{\"tickets\":2,\"ti\u{200d}ckets\":1}",
        ] {
            cases.push(case(&format!("body: {text:?}"), self.ask("hall", text), invalid));
        }
        let closed = Problem(403, "sale-closed");
        for sale in ["over", "later", "paused"] {
            cases.push(case(&format!("sale: {sale}"), self.ask(sale, r#"{"tickets":1}"#), closed));
        }
        cases.extend([
            case("body: the control", self.ask("hall", two), Fine(201)),
            case("body: again at once", self.ask("hall", two), Problem(429, "too-many-requests")),
            case(
                "body: JSON with a charset",
                typed("application/json; charset=utf-8"),
                Problem(429, "too-many-requests"),
            ),
        ]);
        cases
    }
}
