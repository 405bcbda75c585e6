//! The two issuers: who has an account at each, and what its tokens are for.

/// Scope that lets an operator look at sales and orders.
pub const WATCH: &str = "onsale/watch";
/// Scope that lets an operator publish sales, run rooms and cancel orders.
pub const OPERATE: &str = "onsale/operate";
/// Scope that lets an operator refund paid orders.
pub const REFUND: &str = "onsale/refund";
/// Scope that lets an operator check tickets at a door.
pub const SCAN: &str = "onsale/scan";
/// Scope that makes a request one of OpenID Connect.
pub const OPENID: &str = "openid";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Realm {
    Buyers,
    Operators,
}

impl Realm {
    pub const ALL: [Self; 2] = [Self::Buyers, Self::Operators];

    /// Its name: the path of its address.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Buyers => "buyers",
            Self::Operators => "operators",
        }
    }

    /// Audience (`aud`) of its access tokens.
    #[must_use]
    pub const fn audience(self) -> &'static str {
        match self {
            Self::Buyers => crate::AUDIENCE,
            Self::Operators => "onsale-operators",
        }
    }

    /// The client that the pages are: it has no secret.
    #[must_use]
    pub const fn client_id(self) -> &'static str {
        match self {
            Self::Buyers => "onsale-pages",
            Self::Operators => "onsale-operators",
        }
    }

    /// The scopes that it grants, beside `openid`.
    #[must_use]
    pub const fn scopes(self) -> &'static [&'static str] {
        match self {
            Self::Buyers => &[],
            Self::Operators => &[WATCH, OPERATE, REFUND, SCAN],
        }
    }

    /// The scopes that the pages ask for, separated by blanks.
    #[must_use]
    pub fn scope(self) -> String {
        [&[OPENID], self.scopes()].concat().join(" ")
    }

    /// The realm of a path's first segment.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|realm| realm.as_str() == name)
    }
}
