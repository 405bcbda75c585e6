//! The cache of the edge: what anyone may be shown, for as long as its origin says.
//!
//! As in a distribution, one request at a time goes to the origin for a key, and who asks meanwhile waits for its
//! answer. Failures are kept for [`ERROR_SECONDS`], so that an origin that fails is not asked by everybody; an
//! answer that has run out is shown again in place of a failure.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::response::Response;
use chrono::Utc;
use http::header::{AGE, CACHE_CONTROL, DATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::sync::watch;

/// For how long failures, and that there is no such thing, are kept, in seconds: as the distribution is
/// configured, whose default of ten would keep a sale from being seen for ten seconds after it was published.
pub(super) const ERROR_SECONDS: u32 = 1;
/// Most seconds for which anything is kept: a year.
const MAX_SECONDS: u32 = 31_536_000;
/// Most answers that are kept.
const MAX_ENTRIES: usize = 10_000;
/// Most bytes that are kept, keys and bodies together.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// An answer of the origin.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    head: Arc<(StatusCode, HeaderMap)>,
    body: Bytes,
}

impl Answer {
    /// An answer that has come now.
    pub(super) fn new(status: StatusCode, mut headers: HeaderMap, body: Bytes) -> Self {
        // Whoever reads the clock from a kept answer adds its age.
        let date = Utc::now().format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        if let Ok(date) = HeaderValue::from_str(&date) {
            headers.insert(DATE, date);
        }
        Self { head: Arc::new((status, headers)), body }
    }

    /// The same for a client; `age` if it was kept.
    pub(super) fn response(&self, age: Option<Duration>) -> Response {
        let (status, headers) = self.head.as_ref();
        let mut response = Response::new(Body::from(self.body.clone()));
        *response.status_mut() = *status;
        headers.clone_into(response.headers_mut());
        if let Some(age) = age {
            response.headers_mut().insert(AGE, HeaderValue::from(age.as_secs()));
        }
        response
    }

    fn status(&self) -> StatusCode {
        self.head.0
    }

    /// For how long it may be kept.
    fn lifetime(&self) -> Duration {
        let (status, headers) = self.head.as_ref();
        let stated = max_age_seconds(headers);
        let seconds = match status.as_u16() {
            429 => 0,
            404 | 414 | 500 | 502 | 503 | 504 => stated.max(ERROR_SECONDS),
            _ => stated,
        };
        Duration::from_secs(seconds.min(MAX_SECONDS).into())
    }
}

/// The seconds for which a cache that many share may keep an answer; 0 if it may not.
fn max_age_seconds(headers: &HeaderMap) -> u32 {
    let lines = headers.get_all(CACHE_CONTROL).iter().filter_map(|line| line.to_str().ok());
    let directives: Vec<String> = lines
        .flat_map(|line| line.split(','))
        .map(|directive| directive.trim().to_ascii_lowercase())
        .collect();
    let forbids =
        |directive: &String| ["no-store", "private", "no-cache"].contains(&directive.as_str());
    if directives.iter().any(forbids) {
        return 0;
    }
    let seconds = |name: &str| {
        let number = |directive: &String| directive.strip_prefix(name)?.parse::<u64>().ok();
        directives.iter().find_map(number).map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX))
    };
    seconds("s-maxage=").or_else(|| seconds("max-age=")).unwrap_or(0)
}

/// What the cache says of a key.
#[derive(Debug)]
pub(super) enum LookUp {
    /// This answer, which is so old.
    Kept(Answer, Duration),
    /// The origin is being asked.
    UnderWay(Waiting),
    /// The origin is to be asked, and [`Cache::finish`] to be called.
    Ask(Asking),
}

/// The wait for an answer of the origin. It ends without one if whoever asked has failed.
pub(super) type Waiting = watch::Receiver<Option<Shown>>;
/// The request to the origin that is under way.
pub(super) type Asking = watch::Sender<Option<Shown>>;
/// An answer, and how old it is if it was kept.
pub(super) type Shown = (Answer, Option<Duration>);

#[derive(Debug)]
pub(super) struct Cache {
    state: Mutex<State>,
    max_entries: usize,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<Arc<str>, Entry>,
    /// The keys, the one that has not been asked for longest first.
    by_use: BTreeMap<u64, Arc<str>>,
    uses: u64,
    bytes: usize,
    under_way: HashMap<Arc<str>, Waiting>,
}

#[derive(Debug)]
struct Entry {
    answer: Answer,
    since: Instant,
    until: Instant,
    last_use: u64,
}

impl Default for Cache {
    fn default() -> Self {
        Self { state: Mutex::default(), max_entries: MAX_ENTRIES, max_bytes: MAX_BYTES }
    }
}

impl Cache {
    /// Looks a key up. Who is to ask the origin is the only one to do so until they have finished.
    pub(super) fn look_up(&self, key: &str, now: Instant) -> LookUp {
        let mut state = self.lock();
        if let Some((answer, age)) = state.fresh(key, now) {
            return LookUp::Kept(answer, age);
        }
        // An error says that whoever asked is gone without an answer.
        let under_way = state.under_way.get(key).filter(|waiting| waiting.has_changed().is_ok());
        if let Some(waiting) = under_way {
            return LookUp::UnderWay(waiting.clone());
        }
        let (asking, waiting) = watch::channel(None);
        state.under_way.insert(key.into(), waiting);
        LookUp::Ask(asking)
    }

    /// Takes the origin's answer: what everybody who waits is shown.
    pub(super) fn finish(&self, key: &str, answer: Answer, now: Instant) -> Shown {
        let mut state = self.lock();
        state.under_way.remove(key);
        let lifetime = answer.lifetime();
        if answer.status().is_server_error()
            && let Some(shown) = state.stale(key, now)
        {
            return shown;
        }
        state.remove(key);
        if !lifetime.is_zero() {
            state.keep(key, answer.clone(), now, lifetime);
            while state.entries.len() > self.max_entries || state.bytes > self.max_bytes {
                if !state.evict() {
                    break;
                }
            }
        }
        (answer, None)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The answer that is kept for a key, if it has not run out.
    fn fresh(&mut self, key: &str, now: Instant) -> Option<(Answer, Duration)> {
        let entry = self.entries.get_mut(key).filter(|entry| now < entry.until)?;
        self.uses += 1;
        if let Some(key) = self.by_use.remove(&entry.last_use) {
            self.by_use.insert(self.uses, key);
        }
        entry.last_use = self.uses;
        Some((entry.answer.clone(), now.saturating_duration_since(entry.since)))
    }

    /// The answer that has run out, if it was none of a failure; it is kept until the origin is asked again.
    fn stale(&mut self, key: &str, now: Instant) -> Option<Shown> {
        let entry = self.entries.get_mut(key)?;
        if entry.answer.status().is_server_error() {
            return None;
        }
        entry.until = now + Duration::from_secs(ERROR_SECONDS.into());
        Some((entry.answer.clone(), Some(now.saturating_duration_since(entry.since))))
    }

    fn keep(&mut self, key: &str, answer: Answer, now: Instant, lifetime: Duration) {
        let key: Arc<str> = key.into();
        self.uses += 1;
        self.bytes += key.len() + answer.body.len();
        self.by_use.insert(self.uses, Arc::clone(&key));
        let entry = Entry { answer, since: now, until: now + lifetime, last_use: self.uses };
        self.entries.insert(key, entry);
    }

    fn remove(&mut self, key: &str) {
        if let Some((key, entry)) = self.entries.remove_entry(key) {
            self.by_use.remove(&entry.last_use);
            self.bytes = self.bytes.saturating_sub(key.len() + entry.answer.body.len());
        }
    }

    /// Removes what has not been asked for longest; false if there is nothing.
    fn evict(&mut self) -> bool {
        let Some(key) = self.by_use.first_key_value().map(|(_, key)| Arc::clone(key)) else {
            return false;
        };
        self.remove(&key);
        true
    }
}

/// The key of a path, and the query that goes to the origin: the parameters that the route reads, in their order,
/// and no other. What else a client adds neither makes another key nor reaches the origin.
pub(super) fn key(path: &str, query: Option<&str>, allowed: &[&str]) -> String {
    let name = |pair: &str| pair.split_once('=').map_or(pair.len(), |(name, _)| name.len());
    let mut read = Vec::new();
    for wanted in allowed {
        let pairs = query.unwrap_or_default().split('&');
        read.extend(pairs.filter(|pair| pair[..name(pair)] == **wanted));
    }
    if read.is_empty() { path.to_owned() } else { format!("{path}?{}", read.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn answer(status: u16, caching: &'static str, text: &str) -> Answer {
        let caching = HeaderValue::from_static(caching);
        let headers = HeaderMap::from_iter([(CACHE_CONTROL, caching)]);
        Answer::new(StatusCode::from_u16(status).unwrap(), headers, text.to_owned().into())
    }

    fn lifetime(status: u16, caching: &'static str) -> u64 {
        answer(status, caching, "").lifetime().as_secs()
    }

    #[test]
    fn an_answer_is_kept_as_long_as_it_says_and_a_failure_for_a_second() {
        for (status, caching, seconds) in [
            (200, "public, max-age=1", 1),
            (200, "public, max-age=31536000, immutable", 31_536_000),
            (200, "max-age=99999999999", 31_536_000),
            (200, "max-age=5, s-maxage=2", 2),
            (200, "Public, Max-Age=7", 7),
            (200, "no-store", 0),
            (200, "private, max-age=60", 0),
            (200, "no-cache, max-age=60", 0),
            (200, "", 0),
            (404, "no-store", 1),
            (404, "max-age=5", 5),
            (500, "no-store", 1),
            (503, "no-store", 1),
            (504, "no-store", 1),
            (429, "max-age=60", 0),
            (400, "no-store", 0),
            (403, "no-store", 0),
            (410, "no-store", 0),
            (422, "max-age=3", 3),
        ] {
            assert_eq!(lifetime(status, caching), seconds, "{status} {caching}");
        }
    }

    /// Asks, and answers if nobody else does.
    fn ask(cache: &Cache, key: &str, now: Instant, origin: &Answer) -> Option<(String, bool)> {
        let text = |answer: &Answer| String::from_utf8(answer.body.to_vec()).unwrap();
        match cache.look_up(key, now) {
            LookUp::Kept(answer, _) => Some((text(&answer), true)),
            LookUp::UnderWay(_) => None,
            LookUp::Ask(_asking) => {
                let (answer, age) = cache.finish(key, origin.clone(), now);
                Some((text(&answer), age.is_some()))
            }
        }
    }

    #[test]
    fn an_answer_is_kept_until_it_runs_out() {
        let (cache, now) = (Cache::default(), Instant::now());
        let (one, two) = (answer(200, "max-age=1", "one"), answer(200, "max-age=1", "two"));
        let shown = |text: &str, kept| Some((text.to_owned(), kept));
        assert_eq!(ask(&cache, "/sales", now, &one), shown("one", false));
        assert_eq!(ask(&cache, "/sales", now + SECOND / 2, &two), shown("one", true));
        assert_eq!(ask(&cache, "/sales?limit=1", now, &two), shown("two", false));
        assert_eq!(ask(&cache, "/sales", now + SECOND, &two), shown("two", false));
        let private = answer(200, "no-store", "three");
        assert_eq!(ask(&cache, "/sales", now + 2 * SECOND, &private), shown("three", false));
        assert_eq!(ask(&cache, "/sales", now + 2 * SECOND, &two), shown("two", false));
    }

    #[test]
    fn what_ran_out_is_shown_in_place_of_a_failure_for_a_second_each() {
        let (cache, now) = (Cache::default(), Instant::now());
        let (good, failed) = (answer(200, "max-age=1", "good"), answer(503, "no-store", "failed"));
        let shown = |text: &str, kept| Some((text.to_owned(), kept));
        assert_eq!(ask(&cache, "/a", now, &failed), shown("failed", false));
        assert_eq!(ask(&cache, "/a", now + SECOND / 2, &good), shown("failed", true));
        assert_eq!(ask(&cache, "/a", now + SECOND, &good), shown("good", false));
        assert_eq!(ask(&cache, "/a", now + 2 * SECOND, &failed), shown("good", true));
        assert_eq!(ask(&cache, "/a", now + 5 * SECOND / 2, &failed), shown("good", true));
        let gone = answer(410, "no-store", "gone");
        assert_eq!(ask(&cache, "/a", now + 4 * SECOND, &gone), shown("gone", false));
        assert_eq!(ask(&cache, "/a", now + 4 * SECOND, &failed), shown("failed", false));
    }

    #[test]
    fn one_request_is_under_way_until_it_has_an_answer_or_fails() {
        let (cache, now) = (Cache::default(), Instant::now());
        let LookUp::Ask(asking) = cache.look_up("/a", now) else { panic!("nobody has asked") };
        assert!(matches!(cache.look_up("/a", now), LookUp::UnderWay(_)));
        assert!(matches!(cache.look_up("/b", now), LookUp::Ask(_)));
        drop(asking);
        let LookUp::Ask(_asking) = cache.look_up("/a", now) else { panic!("it has failed") };
        cache.finish("/a", answer(429, "no-store", ""), now);
        assert!(matches!(cache.look_up("/a", now), LookUp::Ask(_)), "429 is not kept");
    }

    #[test]
    fn what_was_not_asked_for_longest_makes_room() {
        let by_count = Cache { max_entries: 2, ..Cache::default() };
        let by_bytes = Cache { max_bytes: 2 * (2 + 100), ..Cache::default() };
        let (now, text) = (Instant::now(), "x".repeat(100));
        let long = answer(200, "max-age=60", &text);
        for cache in [by_count, by_bytes] {
            for key in ["/a", "/b", "/a", "/c"] {
                ask(&cache, key, now, &long);
            }
            let is_kept = |key: &str| cache.lock().entries.contains_key(key);
            assert!(is_kept("/a") && !is_kept("/b") && is_kept("/c"));
            let state = cache.lock();
            assert_eq!((state.by_use.len(), state.bytes), (2, 204));
        }
        let small = Cache { max_bytes: 10, ..Cache::default() };
        ask(&small, "/a", now, &long);
        let state = small.lock();
        assert_eq!((state.entries.len(), state.bytes), (0, 0));
    }

    #[test]
    fn only_what_a_route_reads_makes_a_key() {
        let allowed = ["from", "to"];
        for (query, expected) in [
            (None, "/a"),
            (Some(""), "/a"),
            (Some("x=1&token=2"), "/a"),
            (Some("to=B&from=A"), "/a?from=A&to=B"),
            (Some("from=A&x=1&to=B&from=C"), "/a?from=A&from=C&to=B"),
            (Some("from"), "/a?from"),
            (Some("from=a%3Db=c"), "/a?from=a%3Db=c"),
            (Some("%66rom=A"), "/a"),
            (Some("FROM=A"), "/a"),
        ] {
            assert_eq!(key("/a", query, &allowed), expected, "{query:?}");
        }
        assert_eq!(key("/a", Some("from=A"), &[]), "/a");
    }
}
