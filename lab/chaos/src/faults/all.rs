//! Everything at once: while all three networks behave badly, Valkey dies with a replica that lagged,
//! and the engine dies before anybody has mended that.

use std::time::Instant;

use super::kill_engine::KillEngine;
use super::network::{Network, To};
use super::redis::KillRedis;
use super::{Fault, FaultContext, Step, Struck};

fn networks() -> [Network; 3] {
    To::ALL.map(Network::among_others)
}

#[derive(Debug)]
pub struct All;

impl Fault for All {
    fn name(&self) -> &'static str {
        "all"
    }

    fn inject<'a>(&'a mut self, context: &'a mut FaultContext) -> Step<'a, Struck> {
        Box::pin(async {
            let began = Instant::now();
            for mut network in networks() {
                network.inject(context).await?;
            }
            let mut struck = KillRedis.inject(context).await?;
            KillEngine.inject(context).await?;
            struck.at = began;
            Ok(struck)
        })
    }

    fn lasts<'a>(&'a mut self, context: &'a mut FaultContext) -> Step<'a, ()> {
        Box::pin(async {
            // The engine comes back to networks that are bad.
            let mut struck = Struck::now();
            KillRedis.end(context, &mut struck).await?;
            KillEngine.end(context, &mut struck).await?;
            Network::last(&networks(), context).await
        })
    }

    fn end<'a>(
        &'a mut self,
        context: &'a mut FaultContext,
        struck: &'a mut Struck,
    ) -> Step<'a, Instant> {
        Box::pin(async {
            let mut mended = Instant::now();
            for mut network in networks() {
                mended = network.end(context, struck).await?;
            }
            Ok(mended)
        })
    }
}
