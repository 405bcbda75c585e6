//! The bills of WeChat Pay and Alipay, day by day, from the ledger of the trades: not before their hour, at addresses that end
//! soon, and wrong in every way that is asked for.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Cursor, Write as _};
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use axum::body::Body;
use axum::response::Response;
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::bill::BillDay;
use fake_limits::table::Limit;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::Error;
use crate::account::broken;
use crate::keys::nonce;
use crate::trades::Trade;

/// How far days begin in Beijing before those of UTC, in milliseconds.
const AHEAD_MS: i64 = 8 * 60 * 60 * 1000;
/// The size of a file that nobody should unpack, in MiB.
const BOMB_MIB: usize = 160;

/// A fault of one request for a bill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BillFault {
    /// It is not made yet.
    NotYet,
    /// There is none for that day.
    Absent,
    /// There were too many requests: 429 at WeChat Pay, a system error at Alipay.
    TooMany,
    /// Its sum is that of another file. WeChat Pay only.
    WrongSum,
    /// Its address is not good any more when the file is asked for.
    Expired,
    /// The file is cut off half way.
    Cut,
    /// Its address is at another host.
    Elsewhere,
    /// The file unpacks to more than anybody should unpack.
    Bomb,
    /// A line stands in it twice.
    Doubled,
    /// Its lines are in another order.
    Reordered,
    /// There are lines that cannot be read: too short, with a huge number.
    Garbled,
    /// Its lines are in two files. Alipay only.
    TwoFiles,
}

/// A file at an address, and until when it is there.
#[derive(Debug)]
struct Placed {
    bytes: Vec<u8>,
    until_ms: i64,
    is_cut: bool,
}

/// The bills of a merchant.
#[derive(Debug, Default)]
pub(crate) struct Bills {
    faults: Mutex<VecDeque<BillFault>>,
    files: Mutex<BTreeMap<String, Placed>>,
    /// How far the bills are ahead of the clock, in milliseconds: nobody need wait for tomorrow.
    ahead_ms: Mutex<i64>,
}

impl Bills {
    /// Plans a fault for the next request for a bill.
    pub(crate) fn next(&self, fault: BillFault) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push_back(fault);
    }

    /// Takes the fault that is planned for this request.
    pub(crate) fn fault(&self) -> Option<BillFault> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Moves the time of bills ahead of the clock.
    pub(crate) fn set_ahead(&self, ahead_ms: i64) {
        *self.ahead_ms.lock().unwrap_or_else(PoisonError::into_inner) = ahead_ms;
    }

    fn now(&self) -> Timestamp {
        let ahead_ms = *self.ahead_ms.lock().unwrap_or_else(PoisonError::into_inner);
        Timestamp::from_ms(Timestamp::now().ms() + ahead_ms)
    }

    /// True if the bill of a day is made so many seconds after its end; `None` if the day is not over.
    pub(crate) fn is_made(&self, day: BillDay, after_seconds: i64) -> Option<bool> {
        let end = day.period(AHEAD_MS).to;
        let now = self.now();
        (end <= now).then(|| end.plus_seconds(after_seconds) <= now)
    }

    /// Puts a file where it can be fetched for as long as `limit` says: the name that its address has.
    pub(crate) fn place(
        &self,
        bytes: Vec<u8>,
        fault: Option<BillFault>,
        limit: &Limit,
    ) -> Result<String, Error> {
        let token = nonce::<32>()?;
        let is_expired = fault == Some(BillFault::Expired);
        let good_for_seconds = limit.count().cast_signed();
        let until = Timestamp::now().plus_seconds(good_for_seconds);
        let until_ms = if is_expired { 0 } else { until.ms() };
        let placed = Placed { bytes, until_ms, is_cut: fault == Some(BillFault::Cut) };
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.insert(token.clone(), placed);
        Ok(token)
    }

    /// The answer with a file, if its address is still good.
    pub(crate) fn fetch(&self, token: &str) -> Option<Response> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let Placed { bytes, until_ms, is_cut } = files.get(token)?;
        if *until_ms < Timestamp::now().ms() {
            return None;
        }
        let (half, rest) = bytes.split_at(bytes.len() / 2);
        let half = Ok(half.to_vec());
        let rest =
            if *is_cut { Err(std::io::Error::other("cut on purpose")) } else { Ok(rest.to_vec()) };
        Some(Response::new(Body::from_stream(stream::iter([half, rest]))))
    }
}

/// The day that a request names.
pub(crate) fn day(text: &str) -> Option<BillDay> {
    BillDay::read(text)
}

/// What the bill of a day has of these trades, with what is odd of it.
pub(crate) fn bill_of(day: BillDay, fault: Option<BillFault>) -> Bill {
    Bill {
        day: Some(day),
        is_doubled: fault == Some(BillFault::Doubled),
        is_reversed: fault == Some(BillFault::Reordered),
        is_garbled: fault == Some(BillFault::Garbled),
    }
}

/// Which bill, and what is odd of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bill {
    /// The day in Beijing; `None` for everything so far.
    pub(crate) day: Option<BillDay>,
    pub(crate) is_doubled: bool,
    pub(crate) is_reversed: bool,
    pub(crate) is_garbled: bool,
}

impl Bill {
    /// True for a time of its day.
    pub(crate) fn has(&self, at_ms: i64) -> bool {
        self.day.is_none_or(|day| BillDay::of(Timestamp::from_ms(at_ms), AHEAD_MS) == day)
    }

    /// Its trades in their order.
    pub(crate) fn sorted(&self, trades: &[Trade]) -> Vec<Trade> {
        let mut trades = trades.to_vec();
        if self.is_reversed {
            trades.reverse();
        }
        trades
    }
}

/// Packs a file with gzip; instead of it noughts that unpack to a hundred million times as much, if that is asked for.
pub(crate) fn gzip(bytes: &[u8], fault: Option<BillFault>) -> Result<Vec<u8>, Error> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(bytes).map_err(broken)?;
    if fault == Some(BillFault::Bomb) {
        let noughts = vec![0; 1024 * 1024];
        for _ in 0..BOMB_MIB {
            packer.write_all(&noughts).map_err(broken)?;
        }
    }
    packer.finish().map_err(broken)
}

/// Packs the files of a bill, and one of its sums, into an archive.
pub(crate) fn zip(
    files: &[Vec<u8>],
    sums: &[u8],
    fault: Option<BillFault>,
) -> Result<Vec<u8>, Error> {
    let mut packer = ZipWriter::new(Cursor::new(Vec::new()));
    let mut add = |name: String, bytes: &[u8], times: usize| -> Result<(), Error> {
        packer.start_file(name, SimpleFileOptions::default()).map_err(broken)?;
        for _ in 0..times {
            packer.write_all(bytes).map_err(broken)?;
        }
        Ok(())
    };
    for (number, file) in files.iter().enumerate() {
        add(format!("20882102146225350156_{number}_业务明细.csv"), file, 1)?;
    }
    add("20882102146225350156_业务明细(汇总).csv".to_owned(), sums, 1)?;
    if fault == Some(BillFault::Bomb) {
        add("more.csv".to_owned(), &vec![b'0'; 1024 * 1024], BOMB_MIB)?;
    }
    Ok(packer.finish().map_err(broken)?.into_inner())
}

/// The SHA-1 of a file; another one, if that is asked for.
pub(crate) fn sha1(bytes: &[u8], fault: Option<BillFault>) -> String {
    let bytes = if fault == Some(BillFault::WrongSum) { b"another".as_slice() } else { bytes };
    let sum = digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
    sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The address of a file, or one at a host of somebody else's.
pub(crate) fn address(url: &str, path: &str, fault: Option<BillFault>) -> String {
    match fault {
        Some(BillFault::Elsewhere) => format!("http://127.0.0.1:9/{path}"),
        Some(_) | None => format!("{url}/{path}"),
    }
}
