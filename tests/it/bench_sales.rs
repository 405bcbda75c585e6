//! `onsale bench sales`, `onsale bench growth`, `onsale bench reload` and `onsale bench trains`, small.

use bench::{growth, reload, sales, trains};

use crate::backends;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_sales_are_counted_with_what_they_cost() {
    if backends::is_foreign("it measures our own fakes") {
        return;
    }
    let options = sales::Options { orders: 120, at_once: 8, sales: 2 };
    let report = sales::run(options).await.unwrap();
    assert_eq!((report.sales, report.sold.orders), (2, 120));
    let sold = &report.sold;
    // The engine's share is what is left of the process: a part counted twice would make it negative.
    let parts = &sold.cpu_ms_by_part;
    assert_eq!(parts.len(), 5, "{parts:?}");
    assert!(parts.values().all(|part| *part >= 0.0), "{parts:?}");
    assert!(parts.values().filter(|part| **part > 0.0).count() >= 2, "{parts:?}");
    assert!(report.to_string().contains("120 orders of 2 sales"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_the_growth_is_measured() {
    if backends::is_foreign("it measures our own fakes") {
        return;
    }
    let options = growth::Options::quick();
    let report = growth::run(&options).await.unwrap();
    let seats: Vec<u32> = report.seats.iter().map(|size| size.seats).collect();
    let sales: Vec<u32> = report.sales.iter().map(|point| point.sales).collect();
    let legs: Vec<u16> = report.legs.iter().map(|point| point.legs).collect();
    assert_eq!((seats, sales, legs), (options.seats, options.sales, options.legs));
    for size in &report.seats {
        assert!(size.left_bytes > size.seats as usize / 8, "{size:?}");
    }
    let costs = report.sales.iter().map(|point| point.order_cpu_ms);
    assert!(costs.chain(report.legs.iter().map(|point| point.order_cpu_ms)).all(|c| c.all > 0.0));
    let written: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
    assert_eq!(written["legs"][1]["legs"], 5);
    assert!(report.tables().contains("whole sales a second"));
}

/// The whole way from the loss of Redis, by nothing but buyers, to the next order and a clean audit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sale_sells_again_after_redis_was_lost_in_the_midst_of_it() {
    if backends::is_foreign("it measures our own fakes") {
        return;
    }
    let options = reload::Options { seats: vec![600, 1_500], fill_percent: 40, rounds: 2 };
    let report = reload::run(&options).await.unwrap();
    let orders: Vec<(u32, u64)> =
        report.sizes.iter().map(|size| (size.seats, size.orders)).collect();
    assert_eq!(orders, [(600, 160), (1_500, 400)]);
    for loss in report.sizes.iter().flat_map(|size| &size.losses) {
        assert!(loss.refused["not-loaded"] > 0, "nobody was there to have it loaded: {loss:?}");
        assert!(loss.selling_ms > 0.0 && loss.loaded_ms > 0.0, "{loss:?}");
    }
    assert!(report.fit.is_some() && report.table().contains("for each 10,000 seats"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_reads_its_page_and_a_scan_the_whole_day() {
    if backends::is_foreign("it measures our own fakes") {
        return;
    }
    let report = trains::run(trains::Options { trains: 400, rounds: 1 }).await.unwrap();
    assert_eq!((report.at_stop, report.on_journey), (24, 3));
    assert_eq!((report.first.trains, report.anew[0].trains, report.repeated.trains), (3, 3, 3));
    // A query, and the header of each train; of the first search the copy of its file as well.
    assert_eq!((report.first.requests, report.anew[0].requests), (7.0, 4.0));
    assert_eq!((report.repeated.requests, report.repeated.redis_calls), (1.0, 0.0));
    assert!(report.scan.read_units > 20.0 * report.repeated.read_units, "{report}");
    assert!(report.first.processor_ms > 0.0 && report.first.bytes > report.repeated.bytes);
}
