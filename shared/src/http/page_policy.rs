//! The content security policy of the pages. Its directives stand in `pages/policy.json`, of which the build of the pages makes
//! the policies with the hashes of inline code.

use std::fmt::Display;
use std::sync::LazyLock;

use serde::Deserialize;

/// Where the origins stand in a policy that a page's script may call besides its own, with a blank before each.
const CONNECT: &str = "{connect}";

/// The policy of a page without script and styles of its own inside, still without origins.
static WITHOUT_INLINE: LazyLock<String> = LazyLock::new(|| {
    let Directives { policy } = serde_json::from_str(include_str!("../../../pages/policy.json"))
        .unwrap_or_else(|error| unreachable!("pages/policy.json: {error}"));
    policy.join("; ").replace("{scripts}", "").replace("{styles}", "")
});

#[derive(Debug, Deserialize)]
struct Directives {
    policy: Vec<String>,
}

/// The policy of a page without script and styles of its own inside, whose script may call these origins.
pub fn without_inline(origins: impl IntoIterator<Item = impl Display>) -> String {
    with_origins(&WITHOUT_INLINE, origins)
}

/// A policy with the origins that the page's script may call.
pub fn with_origins(policy: &str, origins: impl IntoIterator<Item = impl Display>) -> String {
    let origins = origins.into_iter().map(|origin| format!(" {origin}"));
    policy.replace(CONNECT, &origins.collect::<String>())
}
