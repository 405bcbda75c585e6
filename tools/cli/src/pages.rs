//! The pages: where the built ones are, and which share of a crowd pays on the page of which provider.

use std::path::PathBuf;

use clap::Args;
use loadtest::Shares;

/// The pages that the engine's gateway serves.
#[derive(Debug, Clone, Args)]
pub struct BuiltPagesArgs {
    /// The folder of the built pages, as npm run build makes it. Without it, / says how to build them.
    #[arg(long = "pages", value_name = "DIR", env = "ONSALE_PAGES")]
    built_pages: Option<PathBuf>,
}

impl BuiltPagesArgs {
    #[must_use]
    pub fn directory(&self) -> Option<PathBuf> {
        self.built_pages.clone().filter(|folder| !folder.as_os_str().is_empty())
    }
}

/// Whether people pay on the pages of the engine's own providers.
#[derive(Debug, Clone, Copy, Args)]
pub struct PagesArgs {
    /// Shares of the buyers who pay on the page of each provider; only who owes CNY pays at WeChat Pay or Alipay
    /// [default: the same of each]
    #[arg(long, value_name = "SHARES", conflicts_with = "call_back")]
    pay_at: Option<Shares>,
    /// Nobody opens a page: the crowd sends the callback itself, as Stripe would.
    #[arg(long)]
    call_back: bool,
}

impl PagesArgs {
    /// The shares; `None` if the crowd calls back.
    #[must_use]
    pub fn shares(&self) -> Option<Shares> {
        (!self.call_back).then(|| self.pay_at.unwrap_or_default())
    }
}
