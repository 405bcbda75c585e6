//! The security headers of pages: `pages/headers.json`, which the distribution's headers are compared with.

use std::sync::LazyLock;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use shared::http::page_policy;

/// The place of the policy that the build of the pages writes.
const POLICY: &str = "{policy}";
/// The document, read once.
static TABLE: LazyLock<Table> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../pages/headers.json"))
        .unwrap_or_else(|error| unreachable!("pages/headers.json: {error}"))
});

#[derive(Debug, Deserialize)]
struct Table {
    headers: Vec<Header>,
    /// In place of those of the same name.
    paths: Vec<PathHeaders>,
}

#[derive(Debug, Deserialize)]
struct PathHeaders {
    path: String,
    headers: Vec<Header>,
}

#[derive(Debug, Deserialize)]
struct Header {
    name: String,
    value: String,
    /// True if it is for TLS only.
    #[serde(default)]
    deployed_only: bool,
}

/// What `csp.json` says, which the build writes beside the pages.
#[derive(Debug, Deserialize)]
struct Policy {
    policy: String,
}

/// The value of `content-security-policy`: the policy of `csp.json`, if that can be read, with the origins that
/// pages may ask besides their own.
pub(super) fn policy(csp_json: Option<&[u8]>, origins: &[String]) -> String {
    let read = csp_json.and_then(|json| serde_json::from_slice(json).ok());
    match read {
        Some(Policy { policy }) => page_policy::with_origins(&policy, origins),
        None => page_policy::without_inline(origins),
    }
}

/// Sets the headers of the page at `path`.
pub(super) fn set(headers: &mut HeaderMap, path: &str, policy: &str) {
    set_with(headers, path, Some(policy));
}

/// Sets the headers of the page at `path` which a function has rendered with a policy of its own.
pub(super) fn set_others(headers: &mut HeaderMap, path: &str) {
    set_with(headers, path, None);
}

fn set_with(headers: &mut HeaderMap, path: &str, policy: Option<&str>) {
    let special = TABLE.paths.iter().filter(|special| special.path == path);
    let all = TABLE.headers.iter().chain(special.flat_map(|special| &special.headers));
    for header in all.filter(|header| !header.deployed_only) {
        let value = match policy {
            Some(policy) => header.value.replace(POLICY, policy),
            None if header.value.contains(POLICY) => continue,
            None => header.value.clone(),
        };
        let name = HeaderName::from_bytes(header.name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        set(&mut headers, path, &policy(None, &["http://127.0.0.1:4100".to_owned()]));
        headers
    }

    #[test]
    fn every_header_is_set_but_those_that_need_tls() {
        let headers = of("/");
        let set = TABLE.headers.iter().filter(|header| !header.deployed_only);
        assert!(set.clone().count() >= 5);
        for header in set {
            assert!(headers.contains_key(&header.name), "{}", header.name);
        }
        assert!(!headers.contains_key("strict-transport-security"));
        assert_eq!(headers["x-content-type-options"], "nosniff");
    }

    #[test]
    fn only_the_scanning_page_has_the_camera() {
        let camera = |path: &str| {
            let permissions = of(path)["permissions-policy"].to_str().unwrap().to_owned();
            permissions.contains("camera=(self)")
        };
        assert!(camera("/scan"));
        assert!(!camera("/") && !camera("/scan/") && !camera("/operator"));
    }

    #[test]
    fn the_policy_is_the_builds_with_the_issuers_origins() {
        let built = br#"{ "policy": "default-src 'self'; connect-src 'self'{connect}" }"#;
        let origins = ["https://a.example".to_owned(), "https://b.example".to_owned()];
        let expected = "default-src 'self'; connect-src 'self' https://a.example https://b.example";
        assert_eq!(policy(Some(built), &origins), expected);
        assert_eq!(policy(Some(built), &[]), "default-src 'self'; connect-src 'self'");
        for broken in [None, Some(&b"{}"[..]), Some(&b"\xff"[..])] {
            let policy = policy(broken, &[]);
            assert!(policy.contains("frame-ancestors 'none'") && !policy.contains('{'));
        }
    }
}
