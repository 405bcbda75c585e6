//! `onsale token`: a development token.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use engine::domain::basics::ids::UserId;
use engine::domain::basics::time::Timestamp;
use serde_json::json;

use super::{Failure, out};
use fake_identity::{Identity, Role};
use local::data_dir::Secrets;

/// Print a development token (JWT) that the engine of the data directory accepts.
///
/// It stands for the token that an identity provider gives a buyer, or, with --operator, for the
/// operator's permission.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  curl -H \"Authorization: Bearer $(onsale token --user alice)\" http://127.0.0.1:8080/orders
  export ONSALE_TOKEN=$(onsale token --operator)      for onsale sale put")]
pub struct TokenCommand {
    /// Whose token it is.
    #[arg(long, value_name = "ID", required_unless_present = "operator")]
    user: Option<UserId>,
    /// May publish sales.
    #[arg(long)]
    operator: bool,
    /// How long it is good, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 24 * 60 * 60)]
    ttl: u32,
}

impl TokenCommand {
    /// Prints the token.
    ///
    /// # Errors
    /// There is no secret to sign it with.
    pub fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let secrets = Secrets::read(data_dir)?;
        let role = if self.operator { Role::Operator } else { Role::Buyer };
        let user = self.user.map_or_else(|| "operator".to_owned(), |user| user.to_string());
        let now = Timestamp::now();
        let identity = Identity::new(secrets.identity.as_bytes());
        let token = identity.token(&user, role, now, self.ttl)?;
        if json {
            let expires_at = now.plus_seconds(i64::from(self.ttl));
            return out(&json!({ "token": token, "user": user, "expires_at": expires_at }));
        }
        out(&token)
    }
}
