//! The engine dies.

use std::time::Instant;

use super::{Fault, FaultContext, Step, Struck};

/// `onsale up` is killed as `kill -9` does, with whatever it was doing, and started again.
#[derive(Debug)]
pub struct KillEngine;

impl Fault for KillEngine {
    fn name(&self) -> &'static str {
        "kill-engine"
    }

    fn inject<'a>(&'a mut self, context: &'a mut FaultContext) -> Step<'a, Struck> {
        Box::pin(async {
            let struck = Struck::now();
            context.rig.engine.kill()?;
            Ok(struck)
        })
    }

    fn end<'a>(
        &'a mut self,
        context: &'a mut FaultContext,
        _struck: &'a mut Struck,
    ) -> Step<'a, Instant> {
        Box::pin(async {
            // From here on it is up to the engine: how long it takes to start counts as repair.
            let mended = Instant::now();
            context.rig.engine.start_again().await?;
            Ok(mended)
        })
    }
}
