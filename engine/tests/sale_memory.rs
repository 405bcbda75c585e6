//! What a sale takes in memory, against the length of its file: what a catalogue that is bounded by bytes
//! reckons with. Alone in its process, so that nothing else is measured.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use engine::domain::basics::ids::SeatName;
use engine::domain::sale::{Sale, SaleFile};
use serde_json::json;

/// Sales that are held at once, so that what the allocator keeps for itself hardly counts.
const SALES: usize = 6;
/// Listed seats of each.
const SEATS: u32 = 60_000;

/// Bytes of the process that are in memory; `None` where the system does not say.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn file() -> Vec<u8> {
    let rows: Vec<_> = (0..SEATS / 40)
        .map(|row| {
            let names: Vec<String> =
                (0..40).map(|seat| format!("N{}-{row}-{seat}", 100 + row / 25)).collect();
            json!({ "row": row.to_string(), "seats": names })
        })
        .collect();
    let file = json!({
        "sale": "arena", "title": "Arena", "currency": "EUR",
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2026-01-02T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": 900,
        "tiers": [{ "tier": "all", "name": "All", "price_minor": 1,
            "sections": [{ "section": "1", "rows": rows }] }],
    });
    file.to_string().into_bytes()
}

#[test]
fn a_sale_takes_at_most_twelve_bytes_for_each_of_its_file() {
    let json = file();
    let seat = SeatName::new("N100-1-1").unwrap();
    let Some(before) = resident() else {
        text::skipped("the system does not say what is in memory");
        return;
    };
    let sales: Vec<Sale> = (0..SALES)
        .map(|_| {
            let file: SaleFile = serde_json::from_slice(&json).unwrap();
            let sale = Sale::from_published(file).unwrap();
            // Names are looked up once somebody chooses a seat.
            assert!(sale.tiers()[0].layout.seat(&seat).is_some());
            sale
        })
        .collect();
    let each = (resident().unwrap() - before) / u64::try_from(sales.len()).unwrap();
    let file_bytes = u64::try_from(json.len()).unwrap();
    println!(
        "{SEATS} listed seats: {file_bytes} bytes of JSON, {each} in memory: {:.1} for each",
        each as f64 / file_bytes as f64
    );
    assert!(each <= 12 * file_bytes, "{each} bytes");
}
