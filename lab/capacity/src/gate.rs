//! The gate of a sale without a waiting room: the engine's own shards, asked as the engine asks them.

use engine::domain::admission::gate::{Admit, AdmitReply, GateShard, Share, TopUp, shard_of};
use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::Sale;
use engine::flows::admit::EXHAUSTED_MS;

/// The gate's answer to people who ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Admitted,
    /// They may ask again after this time, in milliseconds.
    Later(u64),
    SoldOut,
}

/// The gate of one sale.
#[derive(Debug)]
pub struct Gate {
    shards: Vec<GateShard>,
    asked: u64,
}

impl Gate {
    /// A gate that nobody has asked.
    #[must_use]
    pub fn new(sale: &Sale) -> Self {
        let shards = sale.file().gate.shards.max(1);
        Self { shards: vec![GateShard::default(); usize::from(shards)], asked: 0 }
    }

    /// Somebody asks, who stands for `people`, for as many tickets each; `free` are the sale's free seat-legs, and
    /// `held` its tickets that are held.
    pub fn ask(
        &mut self,
        sale: &Sale,
        people: u32,
        tickets: u32,
        now: Timestamp,
        free: u64,
        held: u64,
    ) -> Answer {
        let settings = sale.file().gate;
        self.asked += 1;
        let Ok(user) = UserId::new(format!("{}", self.asked)) else { return Answer::SoldOut };
        let shard = shard_of(&user, settings.shards);
        let rate = settings.rate_per_second / u32::from(settings.shards.max(1)) / people.max(1);
        let mut command = Admit {
            sale: SaleId::clone(&sale.file().sale),
            shard,
            user,
            tickets: u16::try_from(tickets.saturating_mul(people)).unwrap_or(u16::MAX),
            now,
            user_lock_ms: settings.user_lock_ms,
            rate_per_second: rate.max(1),
            first: Share::opening(sale),
            top_up: None,
        };
        let Some(state) = self.shards.get_mut(usize::from(shard)) else { return Answer::SoldOut };
        let mut reply = state.admit(&command);
        if let AdmitReply::BudgetUsedUp { generation } = reply {
            let share = Share::new(&settings, sale.leg_count(), free);
            let holds = free == 0 && held > 0;
            command.top_up = Some(TopUp { generation, share, exhausted_ms: EXHAUSTED_MS, holds });
            reply = state.admit(&command);
        }
        // Nobody asks twice within the lock here: what it remembers of them would only grow.
        state.locks.clear();
        let wait = |ms: i64| Answer::Later(u64::try_from(ms).unwrap_or(0));
        match reply {
            AdmitReply::Admitted => Answer::Admitted,
            AdmitReply::Exhausted { holds: false, .. } => Answer::SoldOut,
            AdmitReply::Exhausted { retry_ms, .. }
            | AdmitReply::Locked { retry_ms }
            | AdmitReply::TooFast { retry_ms } => wait(retry_ms),
            AdmitReply::BudgetUsedUp { .. } => wait(1_000),
        }
    }
}
