//! The pages: which file a path has, and how it is answered.

use std::path::Path;
use std::sync::LazyLock;

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use shared::http::origin::Origin;
use shared::http::respond::IMMUTABLE;
use shared::http::routes::matched;

use super::files::{File, Files};
use super::headers;
use crate::pages_config::PagesConfig;

/// The caching of what may change with the next build: it is asked for again, by its tag.
const ASK_AGAIN: &str = "no-cache";
/// Where the hashed files are.
const ASSETS: &str = "/assets/";
/// Other files that are served under their own names: a service worker's scope is where its file is.
const OWN_NAMES: [&str; 2] = ["/robots.txt", "/sw.js"];
/// The file that tells search engines where the sitemap is.
const ROBOTS: &str = "robots.txt";
/// The settings of the deployment.
const CONFIG: &str = "/config.json";
/// The policy that the build writes.
const CSP: &str = "csp.json";
/// The page of what is not there.
const MISSING: &str = "404.html";
/// What is said in place of pages that nobody has built.
const NOT_BUILT: &str = "The pages are not built, or this engine was not told where they are.\n\n  \
    make demo                           builds them, and shows them with a crowd at work\n  \
    npm install && npm run build        builds them alone, to pages/dist (Node 20 or later)\n  \
    scripts/onsale up                   serves pages/dist, if it is there\n  \
    onsale up --pages DIR               serves those of another folder\n\n\
    The API is here all the same: /api/sales, described by /api/openapi.json.\n";

/// The table of pages, read once.
static TABLE: LazyLock<Table> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../pages/routes.json"))
        .unwrap_or_else(|error| unreachable!("pages/routes.json: {error}"))
});

#[derive(Debug, Deserialize)]
struct Table {
    pages: Vec<PageRow>,
    /// Files with the same name in every build, which a page that a function renders asks for.
    same_names: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct PageRow {
    path: String,
    file: String,
}

/// What a path that is no route of the API leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target<'a> {
    /// A page, by its file.
    Page(&'static str),
    /// A hashed file, which never changes, by its path in the directory.
    Asset(&'a str),
    /// Another file, which may change with each build, by its path in the directory.
    OwnName(&'a str),
    Config,
    Nothing,
}

impl<'a> Target<'a> {
    /// The target of a path.
    pub(super) fn from_path(path: &'a str) -> Self {
        if path == CONFIG {
            return Self::Config;
        }
        let file = path.strip_prefix('/').unwrap_or(path);
        let has_own_name =
            OWN_NAMES.contains(&path) || TABLE.same_names.iter().any(|name| name == file);
        if path.starts_with(ASSETS) && !has_own_name {
            return Self::Asset(file);
        }
        if has_own_name {
            return Self::OwnName(file);
        }
        let page = TABLE.pages.iter().find(|page| matched(&page.path, path).is_some());
        page.map_or(Self::Nothing, |page| Self::Page(&page.file))
    }
}

/// The pages of an engine.
#[derive(Debug)]
pub(super) struct Pages {
    files: Option<Files>,
    config: File,
    origins: Vec<String>,
    /// The line of `robots.txt` that says where the sitemap is, if the origin of the pages is known.
    sitemap: String,
}

impl Pages {
    /// The pages in a directory, with their settings, at an origin.
    pub(super) fn new(
        directory: Option<&Path>,
        config: &PagesConfig,
        origin: Option<&Origin>,
    ) -> Self {
        let text = serde_json::to_vec_pretty(config)
            .unwrap_or_else(|error| unreachable!("settings could not be written: {error}"));
        let files = directory.map(Files::new);
        let sitemap = origin.map(|origin| format!("\nSitemap: {origin}/sitemap.xml\n"));
        let (config, origins) = (File::new(CONFIG, text), config.origins());
        Self { files, config, origins, sitemap: sitemap.unwrap_or_default() }
    }

    /// True if there is a directory of pages: then everything that is not the API's is theirs.
    pub(super) fn are_there(&self) -> bool {
        self.files.is_some()
    }

    /// The answer to a request for this path.
    pub(super) fn answer(&self, path: &str, asked: &HeaderMap) -> Response {
        let Some(files) = &self.files else { return self.unbuilt(path, asked) };
        let ok = StatusCode::OK;
        let found = match Target::from_path(path) {
            Target::Config => Some(self.config.answer(asked, ok, ASK_AGAIN)),
            Target::Asset(file) => files.get(file).map(|file| file.answer(asked, ok, IMMUTABLE)),
            Target::OwnName(ROBOTS) => files.get(ROBOTS).map(|file| {
                let text = [file.bytes.as_ref(), self.sitemap.as_bytes()].concat();
                File::new(ROBOTS, text).answer(asked, ok, ASK_AGAIN)
            }),
            Target::Page(file) | Target::OwnName(file) => {
                files.get(file).map(|file| file.answer(asked, ok, ASK_AGAIN))
            }
            Target::Nothing => None,
        };
        let mut response = found.unwrap_or_else(|| missing(files, asked));
        let csp = files.get(CSP);
        let policy = headers::policy(csp.as_ref().map(|file| file.bytes.as_ref()), &self.origins);
        headers::set(response.headers_mut(), path, &policy);
        response
    }

    /// The settings, or how to build the pages.
    fn unbuilt(&self, path: &str, asked: &HeaderMap) -> Response {
        let mut response = match Target::from_path(path) {
            Target::Config => self.config.answer(asked, StatusCode::OK, ASK_AGAIN),
            Target::Page(_) | Target::Asset(_) | Target::OwnName(_) | Target::Nothing => {
                plain(NOT_BUILT)
            }
        };
        headers::set(response.headers_mut(), path, &headers::policy(None, &self.origins));
        response
    }
}

/// The answer to a request for what is not there.
fn missing(files: &Files, asked: &HeaderMap) -> Response {
    let not_found = StatusCode::NOT_FOUND;
    match files.get(MISSING) {
        Some(page) => page.answer(asked, not_found, ASK_AGAIN),
        None => plain("There is no such page.\n"),
    }
}

/// A text, of what is not found.
fn plain(text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::NOT_FOUND;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use std::fs;

    use axum::body::to_bytes;
    use http::Method;
    use shared::http::routes::ROUTES;

    use super::*;
    use crate::gateway::{Matched, Routes};

    #[test]
    fn a_path_leads_to_its_page_and_to_no_other() {
        for (path, file) in [
            ("/", "index.html"),
            ("/s/g35/room", "room.html"),
            ("/s/g35/seats", "seats.html"),
            ("/checkout/42", "checkout.html"),
            ("/my/orders", "orders.html"),
            ("/my/tickets/42", "tickets.html"),
            ("/operator", "operator.html"),
            ("/operator/desk", "desk.html"),
            ("/scan", "scan.html"),
            ("/signed-in", "signed-in.html"),
        ] {
            assert_eq!(Target::from_path(path), Target::Page(file), "{path}");
        }
        for path in [
            "",
            "//",
            "/s",
            "/s/",
            "/s/g35",
            "/s//room",
            "/s/g35/room/",
            "/S/g35",
            "/index.html",
            "/csp.json",
        ] {
            assert_eq!(Target::from_path(path), Target::Nothing, "{path}");
        }
        assert_eq!(Target::from_path("/config.json"), Target::Config);
        assert_eq!(Target::from_path("/assets/a.js"), Target::Asset("assets/a.js"));
        for name in ["sw.js", "robots.txt", "assets/sale.js", "assets/sale.css"] {
            assert_eq!(Target::from_path(&format!("/{name}")), Target::OwnName(name));
        }
    }

    /// Else one of the two could never be asked for at its own address.
    #[test]
    fn no_page_is_a_route_of_the_api_that_is_read() {
        let paths = TABLE.pages.iter().map(|page| page.path.as_str());
        for path in paths.chain([CONFIG, "/assets/a.js", "/sw.js", "/api", "/api/sales"]) {
            let found = Routes::Api.find(&Method::GET, path);
            assert!(!matches!(found, Matched::Route(..)), "{path}");
        }
        assert!(ROUTES.iter().all(|row| !row.path.starts_with("/api")));
    }

    fn dist() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("assets")).unwrap();
        for (name, text) in [
            ("index.html", "<h1>on sale</h1>"),
            ("404.html", "<h1>nothing</h1>"),
            ("assets/main-1.js", "1"),
            ("assets/sale.js", "2"),
            ("robots.txt", "User-agent: *\n"),
            ("csp.json", r#"{"policy":"default-src 'self'{connect}"}"#),
        ] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    async fn text(response: Response) -> String {
        let bytes = to_bytes(response.into_body(), 10_000).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn pages_are_asked_for_again_and_assets_never() {
        let dir = dist();
        let origin = Origin::new("https://tickets.example");
        let pages = Pages::new(Some(dir.path()), &PagesConfig::default(), origin.as_ref());
        let get = |path: &str| pages.answer(path, &HeaderMap::new());
        for (path, status, caching, kind) in [
            ("/", 200, ASK_AGAIN, "text/html; charset=utf-8"),
            ("/assets/main-1.js", 200, IMMUTABLE, "text/javascript; charset=utf-8"),
            ("/assets/sale.js", 200, ASK_AGAIN, "text/javascript; charset=utf-8"),
            ("/config.json", 200, ASK_AGAIN, "application/json"),
            ("/robots.txt", 200, ASK_AGAIN, "text/plain; charset=utf-8"),
            ("/s/g35/room", 404, ASK_AGAIN, "text/html; charset=utf-8"),
            ("/csp.json", 404, ASK_AGAIN, "text/html; charset=utf-8"),
            ("/assets/../csp.json", 404, ASK_AGAIN, "text/html; charset=utf-8"),
        ] {
            let response = get(path);
            assert_eq!(response.status(), status, "{path}");
            assert_eq!(response.headers()[CACHE_CONTROL], caching, "{path}");
            assert_eq!(response.headers()[CONTENT_TYPE], kind, "{path}");
            assert_eq!(response.headers()["content-security-policy"], "default-src 'self'");
        }
        assert_eq!(text(get("/")).await, "<h1>on sale</h1>");
        assert_eq!(text(get("/nothing")).await, "<h1>nothing</h1>");
        let robots = "User-agent: *\n\nSitemap: https://tickets.example/sitemap.xml\n";
        assert_eq!(text(get("/robots.txt")).await, robots);
        let config: serde_json::Value =
            serde_json::from_str(&text(get("/config.json")).await).unwrap();
        assert_eq!(config["payments"], serde_json::json!([]));
    }

    #[tokio::test]
    async fn without_pages_it_is_said_how_to_build_them() {
        let pages = Pages::new(None, &PagesConfig::default(), None);
        assert!(!pages.are_there());
        let response = pages.answer("/", &HeaderMap::new());
        assert_eq!(response.status(), 404);
        assert!(text(response).await.contains("make demo"));
        let empty = tempfile::tempdir().unwrap();
        let pages = Pages::new(Some(empty.path()), &PagesConfig::default(), None);
        assert_eq!(text(pages.answer("/", &HeaderMap::new())).await, "There is no such page.\n");
    }
}
