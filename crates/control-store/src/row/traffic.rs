//! Columns of counters, compressed: every heartbeat writes one, and a step of traffic has those of
//! all nodes.
//!
//! The JSON of 500 routes has 50 KB, and SQLite rewrites the whole row. Uncompressed rows of
//! earlier releases remain readable.

pub(crate) mod step;

use crate::error::StoreError;
use crate::row::optional_text;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use control_domain::{CountedRequests, RouteCounts};
use control_wire::{LATENCY_BOUNDS_MS, Traffic};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sqlx::any::AnyRow;
use std::collections::BTreeMap;

/// Prefix of compressed values; JSON never begins with it.
const PREFIX: &str = "zstd:";
/// Minimum size for compression; shorter JSON is stored plain.
const MIN_BYTES: usize = 1024;
/// zstd's fastest level: counters compress well even so.
const LEVEL: i32 = 1;
/// Maximum size after decompression; a heartbeat has at most 512 KiB.
const MAX_BYTES: usize = 1024 * 1024;

/// Packs traffic as text for its column.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if it cannot be compressed.
pub(crate) fn packed(traffic: &Traffic) -> Result<String, StoreError> {
    let fault = || StoreError::Corrupt("traffic");
    let json = serde_json::to_vec(traffic).map_err(|_| fault())?;
    if json.len() < MIN_BYTES {
        return String::from_utf8(json).map_err(|_| fault());
    }
    let bytes = zstd::bulk::compress(&json, LEVEL).map_err(|_| fault())?;
    Ok(format!("{PREFIX}{}", STANDARD_NO_PAD.encode(bytes)))
}

/// Reads an optional column of traffic.
///
/// # Errors
///
/// [`StoreError::Corrupt`] with the column's name.
pub(crate) fn optional_traffic(
    row: &AnyRow,
    column: &'static str,
) -> Result<Option<Traffic>, StoreError> {
    let text = optional_text(row, column)?;
    let read = text.map(|text| unpacked(&text).ok_or(StoreError::Corrupt(column)));
    read.transpose()
}

/// Reads the counters of a column that requests are counted from, and skips the rest.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if the column is damaged.
pub(crate) fn stored_counts(text: &str) -> Result<RouteCounts, StoreError> {
    #[derive(Deserialize)]
    struct Counters {
        routes: BTreeMap<String, RouteCounters>,
    }
    #[derive(Deserialize)]
    struct RouteCounters {
        requests: u64,
        errors: u64,
        latency: [u64; LATENCY_BOUNDS_MS.len() + 1],
    }
    let Counters { routes } = unpacked(text).ok_or(StoreError::Corrupt("traffic"))?;
    let routes = routes.into_iter().map(|(name, counters)| {
        let RouteCounters {
            requests,
            errors,
            latency,
        } = counters;
        let counted = CountedRequests {
            requests,
            errors,
            latency,
        };
        (name, counted)
    });
    Ok(RouteCounts {
        routes: routes.collect(),
    })
}

fn unpacked<T: DeserializeOwned>(text: &str) -> Option<T> {
    let Some(packed) = text.strip_prefix(PREFIX) else {
        return serde_json::from_str(text).ok();
    };
    let bytes = STANDARD_NO_PAD.decode(packed).ok()?;
    let json = zstd::bulk::decompress(&bytes, MAX_BYTES).ok()?;
    serde_json::from_slice(&json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The traffic of this many routes after a day, with distinct counts.
    fn traffic(routes: u64) -> Traffic {
        let route = |number: u64| {
            let latency: Vec<u64> = (0..12)
                .map(|bucket| number * 977 * (12 - bucket) % 99_991)
                .collect();
            let requests = latency.iter().sum::<u64>();
            let reasons =
                json!({"connect_refused": number % 7, "response_header_timeout": number % 3});
            let counted = json!({
                "requests": requests, "errors": number % 11, "reasons": reasons, "latency": latency,
            });
            (format!("route-{number}"), counted)
        };
        let routes: serde_json::Map<_, _> = (0..routes).map(route).collect();
        serde_json::from_value(json!({"routes": routes})).unwrap()
    }

    #[test]
    fn traffic_is_kept_in_less_than_a_third() {
        let large = traffic(500);
        let json = serde_json::to_string(&large).unwrap();
        let text = packed(&large).unwrap();
        println!("{} bytes of JSON, {} kept", json.len(), text.len());
        assert!(
            text.len() * 3 < json.len(),
            "{} of {}",
            text.len(),
            json.len()
        );
        assert_eq!(unpacked(&text), Some(large.clone()));
        assert_eq!(unpacked(&json), Some(large), "as older releases wrote it");
        let small = traffic(1);
        assert_eq!(
            packed(&small).unwrap(),
            serde_json::to_string(&small).unwrap()
        );
        assert_eq!(unpacked::<Traffic>("zstd:"), None);
        assert_eq!(unpacked::<Traffic>("zstd:AAAA"), None);
    }

    #[test]
    fn requests_are_counted_from_the_stored_counters() {
        let traffic = traffic(500);
        let counts = stored_counts(&packed(&traffic).unwrap()).unwrap();
        assert_eq!(counts, RouteCounts::from(&traffic));
        assert!(stored_counts("zstd:AAAA").is_err());
    }
}
