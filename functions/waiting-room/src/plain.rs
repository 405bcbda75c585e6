//! `GET /s/{sale}/room/plain`: the waiting room for whoever has no script. The page says what the room does and which
//! places are due, in both languages at once, and loads itself anew: the same page for everybody, as the room document
//! is, so that people compare its numbers with their own place.

use engine::domain::admission::room::document::{Document, GroupDocument, RoomState};
use engine::domain::sale::Sale;
use maud::{DOCTYPE, Markup, html};

/// Shortest time after which the page is loaded anew, in seconds: no screen reader would get to its end before.
const MIN_SECONDS: u64 = 15;

/// A sentence in both languages.
type Words = [(&'static str, &'static str); 2];

const ENGLISH: &str = "en";
const CHINESE: &str = "zh-Hans";

/// What the page cannot do.
const NEEDS_SCRIPT: Words = [
    (
        ENGLISH,
        "This page only shows the room. Joining it, choosing seats and paying need a browser with JavaScript; whoever \
         has joined keeps the place, and has to be there with such a browser when it is due.",
    ),
    (
        CHINESE,
        "此页面仅供查看。加入等候室、选座和付款需要启用 JavaScript 的浏览器；已加入者保留名次，轮到时须使用此类浏览器入场。",
    ),
];

/// The page of a room.
pub(super) fn page(sale: &Sale, room: &Document) -> String {
    let seconds =
        room.poll.min_seconds.max(MIN_SECONDS).min(room.poll.max_seconds.max(MIN_SECONDS));
    let title = &sale.file().title;
    let page = html! {
        (DOCTYPE)
        html lang=(ENGLISH) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="refresh" content=(seconds);
                title { (title) " – Waiting room 等候室" }
            }
            body {
                main {
                    h1 { (title) }
                    (said(&NEEDS_SCRIPT))
                    (said(&says(room.state)))
                    @if let Some(notice) = &room.notice {
                        (said(&[(ENGLISH, "The operator says:"), (CHINESE, "主办方通知：")]))
                        blockquote { (notice) }
                    }
                    @if room.state != RoomState::Joining { (groups(&room.groups)) }
                    p {
                        "As of " time datetime=(room.as_of) { (room.as_of) } ". This page loads itself anew. "
                        span lang=(CHINESE) { "此页面会自动刷新。" }
                    }
                }
            }
        }
    };
    page.into_string()
}

fn said(words: &Words) -> Markup {
    html! { @for (language, words) in words { p lang=(language) { (words) } } }
}

/// What a room does, in words.
const fn says(state: RoomState) -> Words {
    let (english, chinese) = match state {
        RoomState::Joining => (
            "People are joining. Places are drawn among all who join: coming early or often changes nothing.",
            "正在登记。名次在所有加入者中抽签决定，早来或多次尝试都不会改变结果。",
        ),
        RoomState::Drawing => ("Places are being drawn.", "正在抽签。"),
        RoomState::Drawn => (
            "Places are drawn. They are served from the opening on, the smallest first.",
            "名次已抽出。从开售起按名次由小到大依次入场。",
        ),
        RoomState::Serving => ("Places are being served.", "正在依次放行。"),
        RoomState::Paused => (
            "The operator has paused the sale. Nobody is served meanwhile. Places are kept.",
            "主办方已暂停销售。暂停期间无人入场，名次保留。",
        ),
        RoomState::Recovering => (
            "Ordering is slow at the moment. Serving goes on as soon as it is not. Places are kept.",
            "目前下单较慢，恢复后将继续放行。名次保留。",
        ),
        RoomState::Stalled => {
            ("Serving has stopped for a moment. Places are kept.", "放行暂时停止。名次保留。")
        }
        RoomState::SoldOut => (
            "Sold out. Nothing is left, and nothing is expected to come back.",
            "已售罄。没有余票，预计也不会有退票。",
        ),
        RoomState::Closed => {
            ("The operator has closed this waiting room.", "主办方已关闭此等候室。")
        }
    };
    [(ENGLISH, english), (CHINESE, chinese)]
}

/// Which places are due.
fn groups(groups: &[GroupDocument]) -> Markup {
    html! {
        p lang=(ENGLISH) {
            "It is your turn if your place is below the first number and not below the second; below the second, a "
            "turn has passed."
        }
        p lang=(CHINESE) { "名次小于第一个数且不小于第二个数时，轮到您；小于第二个数时，已过号。" }
        table {
            thead {
                tr {
                    th scope="col" { "Group 组" }
                    th scope="col" { "Served below 放行至" }
                    th scope="col" { "Passed below 已过至" }
                    th scope="col" { "Joined 加入人数" }
                }
            }
            tbody {
                @for group in groups {
                    tr {
                        th scope="row" { (group.group) }
                        td { (group.serving) }
                        td { (group.passed) }
                        td { (group.joined) }
                    }
                }
            }
        }
    }
}
