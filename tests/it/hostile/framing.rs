//! What is no HTTP, or hardly.

use super::Expected::{Fine, Problem};
use super::request::Raw;
use super::{BARE, Case, Fixture, case};

impl Fixture {
    /// What is no HTTP, or hardly.
    pub(super) fn framing(&self) -> Vec<Case> {
        let bare = Problem(400, BARE);
        let malformed = Problem(400, "malformed");
        let ask = |rest: &str| {
            let token = &self.bob;
            Raw::bytes(format!(
                "POST /sales/hall/admissions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
                 Content-Type: application/json\r\nConnection: close\r\n{rest}"
            ))
        };
        let get = |rest: &str| Raw::bytes(format!("GET /sales HTTP/1.1\r\nHost: x\r\n{rest}"));
        let many: String = (0..150).map(|index| format!("X-{index}: y\r\n")).collect();
        let huge = format!("X: {}\r\n\r\n", "y".repeat(600_000));
        vec![
            case("framing: noise", Raw::bytes(b"\x00\x01\x02\xff\r\n\r\n"), bare),
            case(
                "framing: TLS",
                Raw::bytes(b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n"),
                bare,
            ),
            case("framing: HTTP/0.9", Raw::bytes("GET /sales\r\n\r\n"), bare),
            case("framing: HTTP/3.0", Raw::bytes("GET /sales HTTP/3.0\r\n\r\n"), bare),
            case("framing: negative length", ask("Content-Length: -1\r\n\r\n"), bare),
            case("framing: length is text", ask("Content-Length: two\r\n\r\n{}"), bare),
            case(
                "framing: two lengths",
                ask("Content-Length: 2\r\nContent-Length: 13\r\n\r\n{}"),
                bare,
            ),
            case(
                "framing: length of 2^64",
                ask("Content-Length: 18446744073709551616\r\n\r\n{}"),
                bare,
            ),
            case(
                "framing: a length and chunks",
                ask("Content-Length: 13\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                malformed,
            ),
            case("framing: unknown coding", ask("Transfer-Encoding: gzip\r\n\r\n{}"), bare),
            case("framing: a name with a blank", get("X Y: z\r\n\r\n"), bare),
            case("framing: a value with NUL", get("X: y\0z\r\n\r\n"), bare),
            case("framing: no colon", get("nonsense\r\n\r\n"), bare),
            case("framing: 150 headers", get(&format!("{many}\r\n")), Problem(431, BARE)),
            case("framing: a header of 600 kB", get(&huge), Problem(431, BARE)),
            case(
                "framing: a target of 70 kB",
                Raw::new("GET", format!("/{}", "a".repeat(70_000))),
                Problem(414, BARE),
            ),
            case(
                "framing: chunk without a size",
                ask("Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"),
                malformed,
            ),
            case(
                "framing: chunk of 2^68",
                ask("Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}"),
                malformed,
            ),
            case(
                "framing: body breaks off",
                ask("Content-Length: 100\r\n\r\n{\"tickets\"").ending(),
                malformed,
            ),
            case(
                "framing: chunks break off",
                ask("Transfer-Encoding: chunked\r\n\r\n5\r\n{\"ti").ending(),
                malformed,
            ),
            case(
                "framing: no host",
                Raw::bytes("GET /sales HTTP/1.1\r\nConnection: close\r\n\r\n"),
                malformed,
            ),
            case(
                "framing: no host in HTTP/1.0",
                Raw::bytes("GET /sales HTTP/1.0\r\n\r\n"),
                Fine(200),
            ),
            case("framing: two hosts", get("Host: y\r\nConnection: close\r\n\r\n"), malformed),
            case(
                "framing: host is none",
                Raw::new("GET", "/sales").header("Host", "a[b"),
                malformed,
            ),
            case(
                "framing: port is none",
                Raw::new("GET", "/sales").header("Host", "a:99999"),
                malformed,
            ),
            case(
                "framing: 10 MB announced",
                ask("Content-Length: 10485761\r\n\r\n{}"),
                Problem(413, "too-large"),
            ),
        ]
    }
}
