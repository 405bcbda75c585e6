//! A request to sign somebody in: its parameters, and where the answer goes.

use std::collections::BTreeMap;

use engine::domain::basics::ids::UserId;

use crate::Realm;
use crate::codes::Grant;
use crate::realm::OPENID;

/// Most bytes of a parameter.
const MAX_BYTES: usize = 2048;
/// Characters of a challenge: SHA-256 in base64url.
const CHALLENGE_CHARS: usize = 43;

/// Parameters by name, each given once.
pub(crate) type Parameters = BTreeMap<String, String>;

/// Why nobody is asked to sign in, and nobody is sent back: the request is not the pages'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotOurs {
    #[error("A parameter is given twice, or is too long.")]
    Parameters,
    #[error("The client is unknown.")]
    Client,
    #[error("The address to come back to is not the one that was registered.")]
    RedirectUri,
}

/// Why the pages get no code: an error of RFC 6749 or of OpenID Connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) error: &'static str,
    pub(crate) about: &'static str,
}

/// A request of the pages, as far as an answer can be sent back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Authorization {
    pub(crate) realm: Realm,
    pub(crate) redirect_uri: String,
    pub(crate) state: String,
    /// What was asked, to be asked again by the form.
    pub(crate) parameters: Parameters,
}

/// The names of the parameters that a form repeats.
pub(crate) const REPEATED: [&str; 8] = [
    "response_type",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "nonce",
    "code_challenge",
    "code_challenge_method",
];

/// The parameters of a query or of a form. `chosen` may be given several times: its values are joined by blanks.
pub(crate) fn parameters(encoded: &[u8]) -> Result<Parameters, NotOurs> {
    let mut parameters = Parameters::new();
    for (name, value) in form_urlencoded::parse(encoded) {
        if name.len() + value.len() > MAX_BYTES {
            return Err(NotOurs::Parameters);
        }
        match parameters.get_mut(name.as_ref()) {
            None => drop(parameters.insert(name.into_owned(), value.into_owned())),
            Some(before) if name == "chosen" && before.len() < MAX_BYTES => {
                before.push(' ');
                before.push_str(&value);
            }
            Some(_) => return Err(NotOurs::Parameters),
        }
    }
    Ok(parameters)
}

/// Where the pages want people back who have signed out (OpenID Connect RP-Initiated Logout 1.0).
pub(crate) fn signed_out(
    realm: Realm,
    parameters: &Parameters,
    callbacks: &[String],
) -> Result<String, NotOurs> {
    let given = |name: &str| parameters.get(name).map_or("", String::as_str);
    if given("client_id") != realm.client_id() {
        return Err(NotOurs::Client);
    }
    let back = given("post_logout_redirect_uri");
    if !callbacks.iter().any(|callback| callback == back) {
        return Err(NotOurs::RedirectUri);
    }
    Ok(back.to_owned())
}

impl Authorization {
    /// Reads a request. `callbacks` are the addresses that the pages may be called back at.
    pub(crate) fn read(
        realm: Realm,
        parameters: Parameters,
        callbacks: &[String],
    ) -> Result<Self, NotOurs> {
        let given = |name: &str| parameters.get(name).cloned().unwrap_or_default();
        if given("client_id") != realm.client_id() {
            return Err(NotOurs::Client);
        }
        let redirect_uri = given("redirect_uri");
        if !callbacks.contains(&redirect_uri) {
            return Err(NotOurs::RedirectUri);
        }
        Ok(Self { realm, redirect_uri, state: given("state"), parameters })
    }

    pub(crate) fn given(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    /// Checks the rest: what is wrong is told to the pages.
    pub(crate) fn check(&self) -> Result<(), Denied> {
        let invalid = |about| Err(Denied { error: "invalid_request", about });
        if self.given("response_type") != "code" {
            let error = "unsupported_response_type";
            return Err(Denied { error, about: "response_type must be code" });
        }
        if self.state.is_empty() {
            return invalid("state is missing");
        }
        if self.given("nonce").is_empty() {
            return invalid("nonce is missing");
        }
        if self.given("code_challenge_method") != "S256" {
            return invalid("code_challenge_method must be S256");
        }
        let challenge = self.given("code_challenge");
        let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if challenge.len() != CHALLENGE_CHARS || !challenge.bytes().all(is_base64url) {
            return invalid("code_challenge must be a SHA-256 hash in base64url");
        }
        if !self.asked().any(|scope| scope == OPENID) {
            return Err(Denied { error: "invalid_scope", about: "scope must have openid" });
        }
        Ok(())
    }

    fn asked(&self) -> impl Iterator<Item = &str> {
        self.given("scope").split(' ').filter(|scope| !scope.is_empty())
    }

    /// The scopes that were asked for and that the issuer grants, without `openid`.
    pub(crate) fn offered(&self) -> impl Iterator<Item = &'static str> {
        let scopes = self.realm.scopes().iter().copied();
        scopes.filter(|scope| self.asked().any(|asked| asked == *scope))
    }

    /// What the code stands for that somebody gets who signs in with this form; `None` if the name could not
    /// be an account's. Only what was asked for and was chosen is granted.
    pub(crate) fn grant(&self) -> Option<Grant> {
        let name = self.given("name").trim();
        let subject = UserId::new(name).ok()?.to_string();
        let is_chosen = |scope: &&str| self.given("chosen").split(' ').any(|one| one == *scope);
        let scopes: Vec<&str> =
            std::iter::once(OPENID).chain(self.offered().filter(is_chosen)).collect();
        Some(Grant {
            realm: self.realm,
            subject,
            scope: scopes.join(" "),
            nonce: self.given("nonce").to_owned(),
            redirect_uri: self.redirect_uri.clone(),
            challenge: self.given("code_challenge").to_owned(),
        })
    }

    /// The address of the pages with an answer; `issuer` goes with each (RFC 9207).
    pub(crate) fn back(&self, issuer: &str, answer: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(answer).append_pair("state", &self.state).append_pair("iss", issuer);
        format!("{}?{}", self.redirect_uri, query.finish())
    }
}
