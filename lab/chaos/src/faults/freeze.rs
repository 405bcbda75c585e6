//! Something stands still in the middle of whatever it does, and goes on some seconds later as if
//! nothing had been.

use std::time::{Duration, Instant};

use super::redis::pair;
use super::{Fault, FaultContext, Step, Struck};
use crate::Error;
use local::servers::Signal;

/// Time that something stands still: longer than anybody waits for Redis or for one attempt at
/// DynamoDB.
const FROZEN: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub enum Freeze {
    Redis,
    Engine,
    Stores,
}

impl Freeze {
    fn signal(&self, context: &mut FaultContext, what: Signal) -> Result<(), Error> {
        match self {
            Self::Redis => {
                let primary = &pair(&mut context.rig.cache)?.primary;
                Ok(if what == Signal::Stop { primary.freeze() } else { primary.resume() }?)
            }
            Self::Engine => context.rig.engine.signal(what),
            Self::Stores => context.rig.fakes.signal(what),
        }
    }
}

impl Fault for Freeze {
    fn name(&self) -> &'static str {
        match self {
            Self::Redis => "freeze-redis",
            Self::Engine => "freeze-engine",
            Self::Stores => "freeze-stores",
        }
    }

    fn inject<'a>(&'a mut self, context: &'a mut FaultContext) -> Step<'a, Struck> {
        Box::pin(async {
            let struck = Struck::now();
            self.signal(context, Signal::Stop)?;
            Ok(struck)
        })
    }

    fn lasts<'a>(&'a mut self, _context: &'a mut FaultContext) -> Step<'a, ()> {
        Box::pin(async {
            // The fault is that time goes by.
            tokio::time::sleep(FROZEN).await;
            Ok(())
        })
    }

    fn end<'a>(
        &'a mut self,
        context: &'a mut FaultContext,
        _struck: &'a mut Struck,
    ) -> Step<'a, Instant> {
        Box::pin(async {
            self.signal(context, Signal::Continue)?;
            Ok(Instant::now())
        })
    }
}
