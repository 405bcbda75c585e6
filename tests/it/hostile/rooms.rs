//! Waiting rooms that are asked for what there is not.

use super::Expected::{Fine, Problem};
use super::request::Raw;
use super::{Case, Fixture, case};

impl Fixture {
    /// Joins, looks and commands that mean no good.
    pub(super) fn rooms(&self) -> Vec<Case> {
        let invalid = Problem(422, "invalid");
        let nothing = Problem(404, "not-found");
        let join =
            |body: &str| Raw::new("POST", "/sales/room/places").bearer(&self.alice).json(body);
        let command = |token: &str, body: &str| {
            Raw::new("POST", "/sales/room/room/commands").bearer(token).json(body)
        };
        let get = |target: &str| Raw::new("GET", target);
        let notice = format!(r#"{{"command":"notice","notice":"{}"}}"#, "n".repeat(201));
        vec![
            case("room: the control", join("{}"), Fine(201)),
            case("room: joined twice", join("{}"), Fine(201)),
            case("room: an index of one's own", join(r#"{"index":0}"#), invalid),
            case("room: a list", join("[]"), invalid),
            case("room: a group of dots", join(r#"{"group":"../all"}"#), invalid),
            case("room: no such group", join(r#"{"group":"vip"}"#), invalid),
            case("room: a code that is none", join(r#"{"code":"1234567"}"#), invalid),
            case("room: a code of the wrong kind", join(r#"{"code":[12345678]}"#), invalid),
            case("room: a code that nobody asks for", join(r#"{"code":"12345678"}"#), Fine(201)),
            case("room: more time, much", join(r#"{"more_time":100}"#), invalid),
            case(
                "room: nobody",
                Raw::new("POST", "/sales/room/places").json("{}"),
                Problem(401, "not-authenticated"),
            ),
            case(
                "room: a sale without one",
                Raw::new("POST", "/sales/hall/places").bearer(&self.alice).json("{}"),
                nothing,
            ),
            case(
                "room: a buyer pauses it",
                command(&self.alice, r#"{"command":"pause"}"#),
                Problem(403, "not-permitted"),
            ),
            case("room: no command", command(&self.operator, "{}"), invalid),
            case(
                "room: a rate of -1",
                command(&self.operator, r#"{"command":"rate","rate":-1}"#),
                invalid,
            ),
            case("room: a long notice", command(&self.operator, &notice), invalid),
            case(
                "room: a notice of two lines",
                command(&self.operator, r#"{"command":"notice","notice":"a\nb"}"#),
                invalid,
            ),
            case("room: a page from -1", get("/sales/room/room/log?from=-1"), invalid),
            case(
                "room: a page from 2^64",
                get("/sales/room/room/log?from=18446744073709551616"),
                invalid,
            ),
            case(
                "room: a page from two places",
                get("/sales/room/room/log?from=0&from=1"),
                invalid,
            ),
            case(
                "room: a chunk of another spelling",
                get("/sales/room/room/leaves/all/00"),
                nothing,
            ),
            case("room: a chunk of 2^32", get("/sales/room/room/leaves/all/4294967296"), nothing),
            case(
                "room: a window of a group of dots",
                get("/sales/room/room/windows/../0"),
                nothing,
            ),
            case(
                "room: a window that is not drawn",
                get("/sales/room/room/windows/all/0"),
                nothing,
            ),
        ]
    }
}
