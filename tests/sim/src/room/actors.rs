//! Those who keep a room going: whoever asks for its document, the schedule that requests draws, the operator
//! and those who bring the beacon's round.

use engine::domain::admission::room::document::Left;
use engine::domain::admission::room::serving::{Command, Refusal, Room};
use engine::domain::basics::bytes::{Hash, Signature};
use engine::domain::sale::Sale;
use engine::flows::room::bring::{self, Brought, Round, bring};
use engine::flows::room::left::left;
use engine::flows::room::published;
use engine::flows::room::request::request_due;
use engine::flows::room::turn::{Turned, command, turn};
use engine::ports::{Catalogue as _, Freshness, Queue as _, StoreError, Stored};
use model_stores::{BeaconModel, Caller};

use super::{BeaconPlan, latest_round};
use crate::environment::{Pool, PortHandle};
use crate::executor::Executor;
use crate::plan::sale_id;
use crate::random::{SeededRng, mix};

/// Time between two runs of the schedule, in milliseconds (`template.yaml`).
const SCHEDULE_MS: i64 = 60_000;
/// Time between two requests of whoever looks on, in milliseconds, while others ask too.
const LOOKS_MS: i64 = 20_000;
/// The same once nothing goes wrong any more: a turn counts a minute for visits at most.
const LOOKS_LATE_MS: i64 = 50_000;
/// Requests after which a room is finished once nothing goes wrong any more: 50 places that nobody uses take
/// 200 of them, an hour by which clocks are behind 72.
const MAX_LOOKS: u32 = 600;
/// Number of times that an operator tries a command.
const COMMANDS: u64 = 30;
/// Time between two tries of an operator to give a silent beacon up, in milliseconds.
const GIVES_UP_MS: i64 = 600_000;
/// Number of rounds that are brought.
const BRINGS: u64 = 8;

/// The sale and its room, as a function reads them.
pub(crate) async fn sale_and_room(ports: &Caller<PortHandle>) -> Stored<(Sale, Room)> {
    let missing = || StoreError::Unavailable("there is no such sale now".to_owned());
    let sale = ports.sale(&sale_id(), Freshness::Cached).await?.ok_or_else(missing)?;
    if sale.lifecycle.is_over() {
        return Err(missing());
    }
    let room = published(ports, &sale_id()).await?.ok_or_else(missing)?;
    Ok((sale.sale.as_ref().clone(), room))
}

async fn left_of(ports: &Caller<PortHandle>, sale: &Sale) -> Option<Left> {
    left(ports, sale).await.ok().flatten()
}

/// Asks for the room document, as the function that shows it does.
pub(crate) async fn ask(executor: &Executor, name: String, place: u64) -> Option<Turned> {
    let asked = executor
        .invoke_in(Pool::Room, name, place, |ports, now| async move {
            let (sale, room) = sale_and_room(&ports).await?;
            let turned = turn(&ports, &room, left_of(&ports, &sale), now).await?;
            if turned.needs_draw {
                // The schedule asks again if this is lost.
                let _asked = ports.draw(&sale_id(), None).await;
            }
            Ok::<_, StoreError>(turned)
        })
        .await;
    let asked = asked?;
    if let Err(StoreError::Contract(what)) = &asked {
        executor.environment.lock().broken("contract", what.clone());
    }
    asked.ok()
}

/// Somebody who looks on, so that turns are made until everybody was served; then the run may end.
pub(crate) async fn onlooker(executor: Executor, place: u64) {
    let mut asked = 0;
    for turn in 0.. {
        let is_calm = {
            let environment = executor.environment.lock();
            environment.now >= environment.plan.calm_from
        };
        executor.sleep(if is_calm { LOOKS_LATE_MS } else { LOOKS_MS }).await;
        if is_calm {
            let mut environment = executor.environment.lock();
            match environment.room_waits() {
                None => return,
                Some((rule, what)) if asked >= MAX_LOOKS => {
                    return environment.broken(rule, format!("{what}, after {asked} requests"));
                }
                Some(_) => asked += 1,
            }
        }
        let _shown = ask(&executor, "onlooker".to_owned(), mix(place, turn)).await;
    }
}

/// The schedule: whatever draw is due is requested every minute.
pub(crate) async fn draws(executor: Executor, place: u64) {
    for turn in 0.. {
        executor.sleep(SCHEDULE_MS).await;
        if executor.environment.lock().oracle.room.is_drawn() {
            return;
        }
        let found = executor
            .invoke("request draws".to_owned(), mix(place, turn), |ports, now| async move {
                request_due(&ports, now).await
            })
            .await;
        if let Some(Ok(found)) = found
            && found.requested > 0
        {
            executor.environment.lock().tally.reach("room: draw requested");
        }
    }
}

/// The operator's commands, each repeated until it is carried out.
pub(crate) async fn commander(executor: Executor, commands: Vec<(i64, u64, Command)>) {
    for (at_ms, place, what) in commands {
        let wait = at_ms - executor.environment.lock().elapsed_ms();
        executor.sleep(wait).await;
        for turn in 0..COMMANDS {
            let what = what.clone();
            let done = executor
                .invoke_in(
                    Pool::Room,
                    "command".to_owned(),
                    mix(place, turn),
                    |ports, now| async move {
                        let (sale, room) = sale_and_room(&ports).await?;
                        command(&ports, &room, &what, left_of(&ports, &sale), now).await
                    },
                )
                .await;
            match done {
                Some(Ok(Ok(_) | Err(Refusal::AfterClose))) => break,
                Some(Ok(Err(refusal))) => {
                    executor.environment.lock().broken("contract", refusal.to_string());
                }
                Some(Err(_)) | None => executor.sleep(5_000).await,
            }
        }
    }
}

/// An operator who gives up a beacon that is silent for an hour, again until the room is drawn.
pub(crate) async fn giver_up(executor: Executor, place: u64) {
    for turn in 0.. {
        executor.sleep(GIVES_UP_MS).await;
        {
            let environment = executor.environment.lock();
            if environment.room_waits().is_none_or(|(rule, _)| rule != "R5") {
                return;
            }
        }
        let what = Command::BeaconGivenUp { by: "Ann".to_owned(), randomness: Hash([8; 32]) };
        let done = executor
            .invoke_in(
                Pool::Room,
                "give up".to_owned(),
                mix(place, turn),
                |ports, now| async move {
                    let (sale, room) = sale_and_room(&ports).await?;
                    command(&ports, &room, &what, left_of(&ports, &sale), now).await
                },
            )
            .await;
        let mut environment = executor.environment.lock();
        match done {
            Some(Ok(Err(Refusal::NotSilent))) => environment.tally.reach("room: not silent"),
            Some(Ok(Ok(_) | Err(Refusal::AfterClose)) | Err(_)) | None => {}
            Some(Ok(Err(refusal))) => environment.broken("contract", refusal.to_string()),
        }
    }
}

/// People who bring the round that is awaited, a false one, or another.
pub(crate) async fn bringer(executor: Executor, place: u64) {
    let mut turn = 0;
    while turn < BRINGS {
        let mut rng = SeededRng::from_label(place, turn);
        executor.sleep(rng.between(2_000, 30_000)).await;
        let (awaited, out) = {
            let environment = executor.environment.lock();
            if environment.room_waits().is_none_or(|(rule, _)| rule != "R5") {
                return;
            }
            let plan = environment.plan.room.as_ref().map_or(BeaconPlan::Comes, |room| room.beacon);
            (environment.oracle.room.awaited(), latest_round(plan, environment.now))
        };
        let Some(awaited) = awaited else { continue };
        turn += 1;
        // Nobody has the signature of a round that is not out.
        let number = if rng.chance(800) { awaited } else { awaited + rng.below(3) };
        let is_true = number <= out && rng.chance(400);
        let signature = if is_true { BeaconModel::signature(number) } else { Signature([7; 48]) };
        let round = Round { number, signature };
        let brought = executor
            .invoke_in(
                Pool::Room,
                "bringer".to_owned(),
                mix(place, 100 + turn),
                |ports, now| async move { bring(&ports, &sale_id(), round, now).await },
            )
            .await;
        let mut environment = executor.environment.lock();
        match brought {
            Some(Ok(Brought::Drawn)) => environment.tally.reach("room: round brought"),
            Some(Ok(Brought::Before)) | None => {}
            Some(Err(refusal)) => {
                if is_true && refusal == bring::Refusal::Forged {
                    environment.broken("R4", format!("the true round {number} is refused"));
                }
                let name = crate::oracle::debug_head(&refusal);
                environment.tally.reach(&format!("room: round {name}"));
            }
        }
    }
}
