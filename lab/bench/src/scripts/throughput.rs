//! How many holds a second one server answers, beside a script that does nothing.
//!
//! Requests are encoded before the clock starts, and replies are only counted: what limits is the
//! server. Both take turns, round by round; the ratio is that of each round with itself.

use engine::domain::inventory::Hold;
use engine::domain::inventory::choice::{Choice, Together};
use engine::ports::Seats as _;
use serde::Serialize;
use std::time::Instant;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::crowd::Crowd;
use super::halls::Hall;
use super::rig::{NOOP, Rig};
use super::{Error, Load, Options};

/// The tier to hold from, in seats.
const SEATS: u32 = 50_000;
/// Most calls of a round: every hold must find seats.
const MAX_CALLS: usize = 20_000;

/// Result of a comparison of throughput.
#[derive(Debug, Clone, Serialize)]
pub struct Throughput {
    /// Number of requests that were under way.
    pub load: Load,
    pub rounds: usize,
    /// Calls of each kind in a round.
    pub calls: usize,
    /// Calls a second of the script that does nothing: median of the rounds.
    pub noop_per_second: f64,
    /// Holds of the best two a second: median of the rounds.
    pub hold_per_second: f64,
    /// Holds as a part of calls that do nothing: median of the rounds.
    pub ratio: f64,
    /// The server's processor time for one call that does nothing, network included.
    pub noop_cpu_us: f64,
    /// The server's processor time for one hold, network included.
    pub hold_cpu_us: f64,
}

pub async fn measure(rig: &mut Rig, load: Load, options: &Options) -> Result<Throughput, Error> {
    let hall = Hall::theatre(SEATS)?;
    let calls = calls(options);
    let mut crowd = Crowd::new(&hall, options.seed);
    let mut holds = Vec::with_capacity(calls);
    for _ in 0..calls {
        let choice = Choice::Best { count: 2, together: Together::Required };
        let wish: Hold = crowd.wants(vec![Crowd::line(&hall.seated, hall.whole(), choice)])?;
        holds.push(rig.seats.hold_request(&wish)?.get_packed_command());
    }
    let noops = vec![noop_request(); calls];
    let mut rounds = Vec::new();
    for _ in 0..options.rounds.max(1) {
        rig.clear().await?;
        rig.seats.load(&hall.load()?).await?;
        let nothing = round(rig, &noops, load).await?;
        let held = round(rig, &holds, load).await?;
        rounds.push((nothing, held));
    }
    let median = |of: &dyn Fn(&(Round, Round)) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Ok(Throughput {
        load,
        rounds: rounds.len(),
        calls,
        noop_per_second: median(&|(noop, _)| noop.per_second),
        hold_per_second: median(&|(_, hold)| hold.per_second),
        ratio: median(&|(noop, hold)| hold.per_second / noop.per_second),
        noop_cpu_us: median(&|(noop, _)| noop.cpu_us),
        hold_cpu_us: median(&|(_, hold)| hold.cpu_us),
    })
}

/// Calls of each kind in a round.
pub fn calls(options: &Options) -> usize {
    (options.calls * 100).clamp(1, MAX_CALLS)
}

/// The request for the script that does nothing.
pub fn noop_request() -> Vec<u8> {
    let mut noop = redis::cmd("EVALSHA");
    noop.arg(redis::Script::new(NOOP).get_hash()).arg(0);
    noop.get_packed_command()
}

/// What a round has come to.
pub struct Round {
    pub per_second: f64,
    /// The server's processor time for one, network included, in microseconds.
    pub cpu_us: f64,
}

/// Sends all requests over all connections and waits for all replies.
pub async fn round(rig: &mut Rig, requests: &[Vec<u8>], load: Load) -> Result<Round, Error> {
    let share = requests.len().div_ceil(load.connections.max(1));
    let mut streams = Vec::new();
    for part in requests.chunks(share.max(1)) {
        let stream = TcpStream::connect(("127.0.0.1", rig.port())).await?;
        stream.set_nodelay(true)?;
        let batches: Vec<Vec<u8>> = part.chunks(load.depth.max(1)).map(<[_]>::concat).collect();
        let sizes: Vec<usize> = part.chunks(load.depth.max(1)).map(<[_]>::len).collect();
        streams.push((BufReader::new(stream), batches, sizes));
    }
    let cpu_before = cpu_seconds(rig).await?;
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for (mut stream, batches, sizes) in streams {
        running.spawn(async move {
            for (batch, replies) in batches.iter().zip(sizes) {
                stream.write_all(batch).await?;
                for _ in 0..replies {
                    skip_reply(&mut stream).await?;
                }
            }
            Ok::<_, Error>(())
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.map_err(|error| Error::Unexpected(error.to_string()))??;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let cpu = cpu_seconds(rig).await? - cpu_before;
    let calls = requests.len() as f64;
    Ok(Round { per_second: calls / seconds, cpu_us: cpu * 1e6 / calls })
}

/// The processor time that the server has used.
async fn cpu_seconds(rig: &mut Rig) -> Result<f64, Error> {
    let info: String = redis::cmd("INFO").arg("cpu").query_async(&mut rig.control).await?;
    let field = |name: &str| -> Option<f64> {
        info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.parse().ok())
    };
    let both = field("used_cpu_user").zip(field("used_cpu_sys"));
    both.map(|(user, system)| user + system)
        .ok_or_else(|| Error::Unexpected("the server does not say its processor time".to_owned()))
}

/// Reads one reply and passes over it; a refused hold and an error end the measurement.
async fn skip_reply(stream: &mut BufReader<TcpStream>) -> Result<(), Error> {
    let mut line = String::new();
    let mut left = 1;
    while left > 0 {
        left -= 1;
        line.clear();
        stream.read_line(&mut line).await?;
        let (kind, rest) = line.trim_end().split_at_checked(1).unwrap_or_default();
        let length = || rest.parse::<usize>().map_err(|_| Error::Unexpected(line.clone()));
        match kind {
            ":" | "+" => {}
            "*" => match length()? {
                1 => return Err(Error::Unexpected("a hold was refused".to_owned())),
                values => left += values,
            },
            "$" => {
                let mut text = vec![0; length()? + 2];
                stream.read_exact(&mut text).await?;
            }
            _ => return Err(Error::Unexpected(line)),
        }
    }
    Ok(())
}
