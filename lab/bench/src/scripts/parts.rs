//! What the parts of a hold cost: the script is cut off after each of them, and answers there.

use std::sync::Arc;

use engine::domain::inventory::Hold;
use engine::domain::inventory::choice::{Choice, Together};
use engine::ports::Seats as _;
use serde::Serialize;
use shared::redis::{RedisSeats, Script, Scripts};

use super::crowd::Crowd;
use super::halls::Hall;
use super::report::Figure;
use super::rig::{Act, Burst, Rig};
use super::throughput::{self, Round};
use super::{Error, Load, Options};

/// Each part of a hold, and the line before which the script is cut off behind it; none behind the last.
const PARTS: [(&str, Option<&str>); 10] = [
    ("the call: its keys, arguments and reply", Some("local call, KEYS, ARGV = redis.call")),
    ("the functions of the script", Some("local sale_key, order, user, content = ")),
    ("HMGET: terms, hold, buyer", Some("if epoch ~= ARGV[1] then")),
    ("the checks of those", Some("-- For each line the key of what is taken")),
    ("HMGET: shape, where searches left off", Some("  local row_bytes, legs, first_leg")),
    ("GETRANGE: seats", Some("  if refusal then")),
    ("the record, and what to set", Some("for i = 1, n, 2 do\n  call('BITFIELD'")),
    ("BITFIELD: what is taken", Some("record = deadline_ms .. '|'")),
    ("HSET: hold, buyer", Some("call('ZADD', KEYS[2], deadline_ms")),
    ("ZADD: deadline", None),
];
/// What a script that is cut off answers: as long as what a hold does.
const ANSWER: &str =
    "do return { 'held', '1795000600000|0123456789abcdef|2|tier,0,1,0.1|auth0|000001', 1 } end\n";
/// Seats of the theatre.
const SEATS: u32 = 50_000;
/// Calls before the measured ones.
const FIRST_CALLS: usize = 20;

/// What a hold costs up to one of its parts, that included.
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    /// Name of the hall.
    pub hall: String,
    /// The last part of the script.
    pub up_to: &'static str,
    /// Its cost in the server.
    #[serde(flatten)]
    pub figure: Figure,
    /// Calls a second over the connections of the last load that was asked for, as a part of those of a script that
    /// does nothing: the median of the rounds. Of the theatre.
    pub of_noop: Option<f64>,
}

/// The script of a hold, up to one of its parts.
fn cut_off(whole: &Script, before: Option<&str>) -> Result<Script, Error> {
    let Some(before) = before else { return Ok(whole.clone()) };
    let lacking = || Error::Unexpected(format!("hold.lua does not have this once: {before}"));
    whole.replaced(before, &format!("{ANSWER}{before}")).ok_or_else(lacking)
}

/// A hold up to one of its parts, and what it has cost.
struct Measured {
    up_to: &'static str,
    seats: RedisSeats,
    bursts: Vec<Burst>,
    of_noop: Vec<f64>,
}

/// Measures every part, in a theatre and on a train, all parts in turn, round by round.
pub async fn measure(rig: &mut Rig, options: &Options) -> Result<Vec<Part>, Error> {
    let whole = rig.seats.clone();
    let mut parts = Vec::new();
    for (hall, load) in
        [(Hall::theatre(SEATS)?, options.throughput.last().copied()), (Hall::train()?, None)]
    {
        let mut each = Vec::with_capacity(PARTS.len());
        for (up_to, before) in PARTS {
            let standard = Scripts::standard();
            let hold = cut_off(&standard.hold, before)?;
            let scripts = Arc::new(Scripts { hold, ..Scripts::clone(&standard) });
            let (bursts, of_noop) = (Vec::new(), Vec::new());
            each.push(Measured { up_to, seats: rig.with_scripts(scripts).await?, bursts, of_noop });
        }
        for _ in 0..options.rounds.max(1) {
            for part in &mut each {
                rig.seats = part.seats.clone();
                part.bursts.push(burst(rig, &hall, options).await?);
                if let Some(load) = load {
                    part.of_noop.push(of_noop(rig, &hall, load, options).await?);
                }
            }
        }
        parts.extend(each.into_iter().map(|measured| part(&hall, measured)));
    }
    rig.seats = whole;
    Ok(parts)
}

fn part(hall: &Hall, measured: Measured) -> Part {
    let Measured { up_to, bursts, mut of_noop, .. } = measured;
    of_noop.sort_by(f64::total_cmp);
    let of_noop = of_noop.get(of_noop.len() / 2).copied();
    Part { hall: hall.name.clone(), up_to, figure: Figure::from_rounds(&bursts), of_noop }
}

fn wishes(hall: &Hall, options: &Options, count: usize) -> Result<Vec<Hold>, Error> {
    let mut crowd = Crowd::new(hall, options.seed);
    let choice = || Choice::Best { count: 2, together: Together::Required };
    let wish = |_| crowd.wants(vec![Crowd::line(&hall.seated, hall.whole(), choice())]);
    (0..count).map(wish).collect()
}

async fn burst(rig: &mut Rig, hall: &Hall, options: &Options) -> Result<Burst, Error> {
    rig.clear().await?;
    rig.seats.load(&hall.load()?).await?;
    let wishes = wishes(hall, options, FIRST_CALLS + options.calls)?;
    let acts: Vec<Act> = wishes.into_iter().map(|wish| Act::Hold(Box::new(wish))).collect();
    let (first, measured) = acts.split_at(FIRST_CALLS);
    rig.burst(first).await?;
    rig.burst(measured).await
}

/// Calls a second, as a part of those of a script that does nothing.
async fn of_noop(rig: &mut Rig, hall: &Hall, load: Load, options: &Options) -> Result<f64, Error> {
    rig.clear().await?;
    rig.seats.load(&hall.load()?).await?;
    let mut holds = Vec::new();
    for wish in wishes(hall, options, throughput::calls(options))? {
        holds.push(rig.seats.hold_request(&wish)?.get_packed_command());
    }
    let noops = vec![throughput::noop_request(); holds.len()];
    let Round { per_second: most, .. } = throughput::round(rig, &noops, load).await?;
    let Round { per_second, .. } = throughput::round(rig, &holds, load).await?;
    Ok(per_second / most)
}
