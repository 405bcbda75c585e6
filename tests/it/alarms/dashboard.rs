//! The dashboard: the metrics of its widgets, and what CloudWatch would not take of it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::metric_use::MetricUse;

/// What one graph or another must show: a metric by one dimension.
const SHOWN: [(&str, &str); 18] = [
    ("Admitted", "Sale"),
    ("Waiting", "Sale"),
    ("HeldTickets", "Sale"),
    ("PaidTickets", "Sale"),
    ("Expired", "Sale"),
    ("Cancelled", "Sale"),
    ("Available", "Sale"),
    ("Joined", "Sale"),
    ("Served", "Sale"),
    ("Came", "Sale"),
    ("AdmittedToNothing", "Sale"),
    ("RoomWaiting", "Sale"),
    ("RoomServing", "Sale"),
    ("RoomNoShows", "Sale"),
    ("RoomRate", "Sale"),
    ("Refused", "Reason"),
    ("Latency", "Function"),
    ("ColdStarts", "Function"),
];

/// The metrics of a widget: arrays of which `.` and `...` are not used, and expressions.
fn of_widget(title: &str, widget: &Value) -> (Vec<MetricUse>, Vec<String>) {
    let (mut used, mut faults) = (Vec::new(), Vec::new());
    for row in widget["properties"]["metrics"].as_array().into_iter().flatten() {
        let cells: Vec<&str> = row.as_array().unwrap().iter().filter_map(Value::as_str).collect();
        if let Some(expression) = row[0]["expression"].as_str() {
            match searched(title, expression) {
                Some(found) => used.push(found),
                None => faults.push(format!("{title}: cannot read {expression}")),
            }
            continue;
        }
        let [namespace, name, dimensions @ ..] = cells.as_slice() else {
            faults.push(format!("{title}: {row}"));
            continue;
        };
        let pairs = dimensions.chunks(2).map(|pair| match pair {
            [name, value] => ((*name).to_owned(), (*value).to_owned()),
            _ => ("?".to_owned(), "?".to_owned()),
        });
        used.push(MetricUse {
            by: title.to_owned(),
            namespace: (*namespace).to_owned(),
            name: (*name).to_owned(),
            dimensions: pairs.collect(),
        });
    }
    (used, faults)
}

/// The metric of `SEARCH('{Namespace,Dimension,…} Stage="dev" MetricName="Name"', 'Sum', 60)`, and
/// of what a list is filled from.
fn searched(by: &str, expression: &str) -> Option<MetricUse> {
    let (schema, rest) = expression.split_once('{')?.1.split_once('}')?;
    let (namespace, dimensions) = schema.split_once(',')?;
    let name = rest.split_once("MetricName=\"")?.1.split_once('"')?.0;
    rest.contains("Stage=\"dev\"").then_some(())?;
    let any = |dimension: &str| match dimension {
        "Stage" => "dev".to_owned(),
        "Function" => "reserve".to_owned(),
        "Reason" => "waiting".to_owned(),
        _ => "-".to_owned(),
    };
    let dimensions = dimensions.split(',').map(|name| (name.to_owned(), any(name))).collect();
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    Some(MetricUse { by: by.to_owned(), namespace, name, dimensions })
}

/// The dashboard's metrics, and what CloudWatch would not take of it.
pub(super) fn of_dashboard(body: &str) -> (Vec<MetricUse>, Vec<String>) {
    let Ok(dashboard) = serde_json::from_str::<Value>(body) else {
        return (Vec::new(), vec!["the dashboard is no JSON".to_owned()]);
    };
    let (mut used, mut faults) = (Vec::new(), Vec::new());
    let mut taken = BTreeSet::new();
    let widgets = dashboard["widgets"].as_array().cloned().unwrap_or_default();
    for widget in &widgets {
        let properties = &widget["properties"];
        let title = properties["title"].as_str().or(properties["markdown"].as_str()).unwrap_or("?");
        let [x, y, width, height] =
            ["x", "y", "width", "height"].map(|name| widget[name].as_u64().unwrap_or(99));
        let cells = (x..x + width).flat_map(|x| (y..y + height).map(move |y| (x, y)));
        let covered = cells.filter(|cell| !taken.insert(*cell)).count();
        if x + width > 24 || covered > 0 {
            faults.push(format!("{title}: lies over another widget, or beyond the edge"));
        }
        match widget["type"].as_str() {
            Some("text") => {}
            Some("metric") => {
                let needed = ["title", "region", "view", "period", "stat", "metrics"];
                let missing = needed.iter().find(|name| properties.get(**name).is_none());
                faults.extend(missing.map(|name| format!("{title}: no {name}")));
                let (metrics, wrong) = of_widget(title, widget);
                used.extend(metrics);
                faults.extend(wrong);
            }
            _ => faults.push(format!("{title}: no widget")),
        }
    }
    let variable = &dashboard["variables"][0];
    let chooses = [("type", "property"), ("property", "Sale"), ("populateFrom", "Sale")];
    if !chooses.iter().all(|(name, value)| variable[name] == *value) {
        faults.push("the dashboard does not choose a sale".to_owned());
    }
    match searched("the list of sales", variable["search"].as_str().unwrap_or_default()) {
        Some(found) => used.push(found),
        None => faults.push("the list of sales has no metric".to_owned()),
    }
    for (name, dimension) in SHOWN {
        let is_it = |one: &MetricUse| one.name == name && one.dimension(dimension).is_some();
        if !used.iter().any(is_it) {
            faults.push(format!("the dashboard does not show {name} by {dimension}"));
        }
    }
    for stat in ["p50", "p99"] {
        let has = |row: &Value| row[1] == "Latency" && row[6]["stat"] == stat;
        let mut rows = widgets.iter().filter_map(|one| one["properties"]["metrics"].as_array());
        if !rows.any(|rows| rows.iter().any(has)) {
            faults.push(format!("the dashboard shows no {stat}"));
        }
    }
    (used, faults)
}
