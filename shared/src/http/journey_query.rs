//! The query that names a journey, as clients of the API write it.

use std::fmt::Write as _;

use engine::domain::basics::ids::StopId;

/// Writes the query `?from=…&to=…` of a journey, with both ids percent-encoded.
#[must_use]
pub fn journey_query(from: &StopId, to: &StopId) -> String {
    format!("?from={}&to={}", percent_encoded(from), percent_encoded(to))
}

/// A stop's id as a query carries it: everything but the letters and digits of ASCII is escaped.
fn percent_encoded(stop: &StopId) -> String {
    let mut encoded = String::new();
    for byte in stop.as_str().bytes() {
        if byte.is_ascii_alphanumeric() {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string never fails.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_can_have_anything_that_a_query_gives_a_meaning() {
        let stop = |id: &str| StopId::new(id).unwrap();
        assert_eq!(
            journey_query(&stop("a 北&"), &stop("StopPoint:é-8+#=%")),
            "?from=a%20%E5%8C%97%26&to=StopPoint%3A%C3%A9%2D8%2B%23%3D%25"
        );
    }
}
