//! What the draw of a large waiting room takes: `onsale bench draw`.
//!
//! The table of rooms is filled with members, then another process draws the room: the function's own flow, on
//! the emulator of DynamoDB and a beacon whose round comes at once. It can be killed on the way, to see what the
//! next one still has to do. The root is compared with the one that the members make.

use std::fmt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::{PutRequest, WriteRequest};
use engine::domain::admission::room::join::{BUCKETS, Index, JoinWindow, Membership, bucket_of};
use engine::domain::admission::room::tree::{self, CHUNK_LEAVES};
use engine::domain::basics::bytes::{Hash, Nonce};
use engine::domain::basics::ids::{GroupId, SaleId, UserId};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::serving::Settings;
use engine::flows::room::draw::{Drawing, draw};
use engine::flows::room::publish::{DrawBy, publish};
use engine::ports::{RoomPorts, Rooms as _};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use local::servers::{DynamoDb, FakeBeacon, Pace};
use local::stores;
use local::up::beacon_config;
use reporting::{count, grouped};
use serde::{Deserialize, Serialize};
use shared::beacon::DrandBeacon;
use shared::dynamodb::{Dynamo, DynamoRooms, StoreConfig, Tables, create_tables, membership_item};
use shared::runtime::connections::{Https, Trust};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::time::sleep;

use super::selling::Failure;

const SALE: &str = "large";
/// One index in so many is nobody's.
const GAP_EVERY: u32 = 50;
/// Items of a write (a quota of DynamoDB), and writes at once.
const ITEMS_AT_ONCE: usize = 25;
const WRITES_AT_ONCE: usize = 4;
/// The latest round of the beacon when the room is closed.
const FIRST_ROUND: u64 = 1000;
/// Pause between two looks whether the draw is as far as it is to be killed at.
const LOOK: Duration = Duration::from_millis(5);

/// Options of the measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Indices that were given, N. One in fifty is nobody's.
    pub places: u32,
    /// Share of the chunks after which the first draw is killed, in per cent; none if it is not.
    pub kill_at_percent: Option<u32>,
}

/// A draw that came to its end.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Run {
    /// From its beginning until N and root stood in the log, in seconds.
    pub closed_s: f64,
    /// From the round's being out until the seed stood in the log, in seconds.
    pub seed_s: f64,
    /// Processor time of the process, in seconds.
    pub processor_s: f64,
    /// The most memory that the process had at once, in MiB; 0 where the kernel does not say.
    pub peak_mib: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Indices that were given, N.
    pub places: u32,
    /// Those of them that somebody holds.
    pub held: u64,
    pub chunks: u64,
    /// Time of writing the members, in seconds.
    pub filled_s: f64,
    /// The chunks that were kept when the first draw was killed; none if it was not.
    pub kept_when_killed: Option<u64>,
    /// The draw; after a kill the one that went on.
    pub draw: Run,
    /// The root, which is that of the members.
    pub root: Hash,
}

impl Report {
    #[must_use]
    pub fn json(&self) -> String {
        reporting::json(self)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { places, held, chunks, filled_s, kept_when_killed, draw, root } = self;
        let (places, held) = (grouped(u64::from(*places)), grouped(*held));
        writeln!(f, "{places} places, {held} of them held; written in {filled_s:.1} s")?;
        if let Some(kept) = kept_when_killed {
            let (kept, chunks) = (grouped(*kept), grouped(*chunks));
            writeln!(f, "a first draw was killed when {kept} of {chunks} chunks were kept")?;
        }
        let Run { closed_s, seed_s, processor_s, peak_mib } = draw;
        writeln!(f, "closed after     {closed_s:>8.2} s")?;
        writeln!(f, "seed after       {seed_s:>8.2} s, from the beacon's round on")?;
        writeln!(f, "processor time   {processor_s:>8.2} s")?;
        writeln!(f, "memory at most   {peak_mib:>8} MiB")?;
        write!(f, "root             {root}, that of the members")
    }
}

/// The names of things.
struct Names {
    sale: SaleId,
    group: GroupId,
}

impl Names {
    fn new() -> Result<Self, Failure> {
        Ok(Self { sale: SaleId::new(SALE)?, group: GroupId::new("all")? })
    }

    /// The member at an index, if somebody holds it.
    fn member(&self, index: u32, now: Timestamp) -> Result<Option<Membership>, Failure> {
        if index % GAP_EVERY == GAP_EVERY - 1 {
            return Ok(None);
        }
        let Self { sale, group } = self;
        let nonce = Hash::of_parts(&[&index.to_be_bytes()]).0;
        let (nonce, _) = nonce.split_first_chunk().ok_or("a hash has 16 bytes")?;
        Ok(Some(Membership {
            sale: sale.clone(),
            group: group.clone(),
            // As long as the ids of Cognito.
            buyer: UserId::new(format!("5f3c1d2e-0000-4000-8000-{index:012x}"))?,
            index: Index { number: index, window: JoinWindow::First },
            nonce: Nonce(*nonce),
            joined_at: now,
            more_time: false,
            rejoined: 0,
            visit: None,
            earlier: Vec::new(),
        }))
    }
}

/// The ports of a draw.
struct Ports {
    rooms: DynamoRooms,
    beacon: DrandBeacon,
}

impl Ports {
    fn new(dynamodb_url: &str, beacon_url: &str) -> Self {
        let https = Https::new(&Trust::public());
        let beacon = DrandBeacon::new(&beacon_config(beacon_url), https);
        Self { rooms: DynamoRooms::new(dynamo(dynamodb_url)), beacon }
    }
}

impl RoomPorts for Ports {
    type Rooms = DynamoRooms;
    type Beacon = DrandBeacon;

    fn rooms(&self) -> &DynamoRooms {
        &self.rooms
    }

    fn beacon(&self) -> &DrandBeacon {
        &self.beacon
    }
}

fn dynamo(url: &str) -> Dynamo {
    let endpoint = Some(url.to_owned());
    let config = StoreConfig { endpoint, ..StoreConfig::new(Tables::with_prefix("")) };
    Dynamo::new(&stores::sdk_config(), config)
}

/// The process that draws: says on standard output what it took. Its round comes as soon as it waits for it.
///
/// # Errors
/// The draw fails.
pub async fn serve(dynamodb_url: &str) -> Result<(), Failure> {
    let names = Names::new()?;
    let beacon = FakeBeacon::start(Pace::ByHand(FIRST_ROUND))?;
    let ports = Ports::new(dynamodb_url, &beacon.url());
    let begun = Instant::now();
    let drawing = draw(&ports, &names.sale, Timestamp::now).await?;
    let closed_s = begun.elapsed().as_secs_f64();
    let Drawing::AwaitsBeacon { round, .. } = drawing else {
        return Err(format!("the draw came to {drawing:?}").into());
    };
    beacon.advance(round.saturating_sub(FIRST_ROUND));
    let out = Instant::now();
    let drawing = draw(&ports, &names.sale, Timestamp::now).await?;
    if drawing != Drawing::Drawn {
        Err(format!("the draw came to {drawing:?}"))?;
    }
    let seed_s = out.elapsed().as_secs_f64();
    let run = Run { closed_s, seed_s, processor_s: processor_s(), peak_mib: peak_mib() };
    println!("{}", serde_json::to_string(&run)?);
    Ok(())
}

/// Processor time of this process, in seconds.
fn processor_s() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default().as_secs_f64()
}

/// The most memory that this process had at once, in MiB. Source: `VmHWM` of proc(5).
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

/// Fills a room, and draws it.
///
/// # Errors
/// A server or a draw fails, the draw was done before it could be killed, or its root is another.
pub async fn run(options: &Options) -> Result<Report, Failure> {
    let dir = tempfile::tempdir()?;
    let server = DynamoDb::file(&dir.path().join("rooms.sqlite"))?;
    let url = server.url();
    let beacon = FakeBeacon::start(Pace::ByHand(FIRST_ROUND))?;
    let ports = Ports::new(&url, &beacon.url());
    let begun = Instant::now();
    let (leaves, held) = fill(&ports, &url, options.places).await?;
    let filled_s = begun.elapsed().as_secs_f64();

    let chunks = leaves.len().div_ceil(CHUNK_LEAVES);
    let kept_when_killed = match options.kill_at_percent {
        None => None,
        Some(percent) => Some(kill(&ports, &url, chunks, percent).await?),
    };
    let mut child = draw_apart(&url)?;
    let mut said = child.stdout.take().ok_or("the draw has no standard output")?;
    let mut line = String::new();
    said.read_to_string(&mut line).await?;
    if !child.wait().await?.success() {
        Err("the draw failed")?;
    }
    let draw: Run = serde_json::from_str(line.trim())?;
    let root = tree::root(&leaves);
    let last = ports.rooms.last_record(&SaleId::new(SALE)?).await?.ok_or("there is no log")?;
    let closings = last.state.groups.iter().filter_map(|group| group.closed.as_ref());
    let found: Vec<(u32, Hash)> =
        closings.map(|closed| (closed.closing.count, closed.closing.root)).collect();
    if found != [(options.places, root)] {
        Err(format!("the log has {found:?}, and the members make {root}"))?;
    }
    let (places, chunks) = (options.places, count(chunks));
    Ok(Report { places, held, chunks, filled_s, kept_when_killed, draw, root })
}

/// Publishes the room, gives the indices and writes the members; the leaves, and how many of them are held.
async fn fill(ports: &Ports, url: &str, places: u32) -> Result<(Vec<Hash>, u64), Failure> {
    let dynamo = dynamo(url);
    create_tables(dynamo.client(), &dynamo.config().tables).await?;
    let (names, now) = (Names::new()?, Timestamp::now());
    let settings = Settings::new(names.group.clone(), now.ms(), 4);
    let draw_by = DrawBy::Beacon(beacon_config("").chains.default_chain());
    // It is as if the room had been published long ago, and its closing were due.
    let earlier = now.plus_seconds(-3_600);
    publish(ports, &names.sale, &settings, u64::from(places), &draw_by, earlier).await?;
    let mut left = places;
    while left > 0 {
        let some = u16::try_from(left).unwrap_or(u16::MAX);
        ports.rooms.take_indices(&names.sale, &names.group, some).await?;
        left -= u32::from(some);
    }
    let mut leaves = Vec::new();
    let mut requests = Vec::new();
    let mut held = 0;
    for index in 0..places {
        let Some(member) = names.member(index, now)? else {
            leaves.push(tree::empty_leaf());
            continue;
        };
        held += 1;
        leaves.push(member.leaf());
        requests.push(member);
    }
    let table = &dynamo.config().tables.rooms;
    let writes = requests.chunks(ITEMS_AT_ONCE).map(|members| {
        let puts: Result<Vec<WriteRequest>, _> = members
            .iter()
            .map(|member| {
                let item = membership_item(member, bucket_of(&member.buyer, BUCKETS));
                let put = PutRequest::builder().set_item(Some(item)).build()?;
                Ok::<_, Failure>(WriteRequest::builder().put_request(put).build())
            })
            .collect();
        let client = dynamo.client();
        async move {
            let written = client.batch_write_item().request_items(table, puts?).send().await?;
            match written.unprocessed_items {
                Some(left) if !left.is_empty() => Err("not all of it was written".into()),
                Some(_) | None => Ok::<_, Failure>(()),
            }
        }
    });
    stream::iter(writes).buffer_unordered(WRITES_AT_ONCE).try_collect::<()>().await?;
    Ok((leaves, held))
}

/// Starts a draw in a process of its own.
fn draw_apart(url: &str) -> Result<Child, Failure> {
    let program = std::env::current_exe()?;
    let mut command = Command::new(program);
    command.args(["bench", "draw-process", url]).stdout(Stdio::piped()).kill_on_drop(true);
    Ok(command.spawn()?)
}

/// Draws until a share of the chunks is kept, and kills it; the number that is kept then.
async fn kill(ports: &Ports, url: &str, chunks: usize, percent: u32) -> Result<u64, Failure> {
    let names = Names::new()?;
    let chunks = u32::try_from(chunks)?;
    let last = (chunks * percent / 100).max(1) - 1;
    let mut child = draw_apart(url)?;
    let is_kept = async |chunk: u32| {
        let kept = ports.rooms.chunk(&names.sale, &names.group, chunk).await?;
        Ok::<_, Failure>(kept.is_some())
    };
    while !is_kept(last).await? {
        if child.try_wait()?.is_some() {
            Err("the draw was done before it could be killed")?;
        }
        sleep(LOOK).await;
    }
    child.kill().await?;
    let mut kept = 0;
    for chunk in 0..chunks {
        kept += u64::from(is_kept(chunk).await?);
    }
    if kept == u64::from(chunks) {
        Err("the draw had kept every chunk before it could be killed")?;
    }
    Ok(kept)
}
