//! Columns of one step of a project's traffic.
//!
//! Routes are JSON. Nodes are binary, because a project may have thousands: the 16 bytes of each
//! identifier, followed by its counts as LEB128 numbers, most of them zero. Both are compressed,
//! and encoded as Base64 to fit text columns of both databases.

use crate::error::StoreError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use control_domain::{CountedRequests, REQUEST_COUNTS, RouteCounts, StepTraffic};
use control_wire::NodeId;
use std::collections::BTreeMap;
use uuid::Uuid;

/// zstd's fastest level.
const LEVEL: i32 = 1;
/// Separates the uncompressed size from the compressed bytes.
const SEPARATOR: char = ':';
/// Maximum size after decompression: 50 000 nodes with the largest counts have 8 MB.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The columns of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepColumns {
    pub(crate) routes: String,
    pub(crate) nodes: String,
}

impl StepColumns {
    /// Packs a step.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if it cannot be compressed.
    pub(crate) fn new(traffic: &StepTraffic) -> Result<Self, StoreError> {
        let StepTraffic { routes, nodes } = traffic;
        let json = serde_json::to_vec(routes).map_err(|_| StoreError::Corrupt("routes"))?;
        let mut bytes = Vec::new();
        for (node, counted) in nodes {
            bytes.extend_from_slice(node.0.as_bytes());
            for count in <[u64; REQUEST_COUNTS]>::from(*counted) {
                write_number(&mut bytes, count);
            }
        }
        Ok(Self {
            routes: compressed(&json).ok_or(StoreError::Corrupt("routes"))?,
            nodes: compressed(&bytes).ok_or(StoreError::Corrupt("nodes"))?,
        })
    }

    /// Unpacks a step.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] with the column's name.
    pub(crate) fn traffic(&self) -> Result<StepTraffic, StoreError> {
        let Self { routes, nodes } = self;
        let nodes = decompressed(nodes).and_then(|bytes| read_nodes(&bytes));
        Ok(StepTraffic {
            routes: read_routes(routes).ok_or(StoreError::Corrupt("routes"))?,
            nodes: nodes.ok_or(StoreError::Corrupt("nodes"))?,
        })
    }

    /// Total requests of a step, from its column of routes; the thousands of nodes stay packed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] with the column's name.
    pub(crate) fn total(routes: &str) -> Result<CountedRequests, StoreError> {
        let routes = read_routes(routes).ok_or(StoreError::Corrupt("routes"))?;
        Ok(routes.total())
    }

    /// Bytes of both columns.
    pub(crate) fn bytes(&self) -> i64 {
        let bytes = self.routes.len() + self.nodes.len();
        i64::try_from(bytes).unwrap_or(i64::MAX)
    }
}

fn read_routes(text: &str) -> Option<RouteCounts> {
    serde_json::from_slice(&decompressed(text)?).ok()
}

fn read_nodes(mut bytes: &[u8]) -> Option<BTreeMap<NodeId, CountedRequests>> {
    let mut nodes = BTreeMap::new();
    while let Some((id, rest)) = bytes.split_first_chunk() {
        bytes = rest;
        let mut counts = [0; REQUEST_COUNTS];
        for count in &mut counts {
            *count = read_number(&mut bytes)?;
        }
        nodes.insert(NodeId(Uuid::from_bytes(*id)), counts.into());
    }
    bytes.is_empty().then_some(nodes)
}

/// Appends a LEB128 number: seven bits per byte, lowest first; every byte but the last has its high
/// bit set.
fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or_default();
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn compressed(bytes: &[u8]) -> Option<String> {
    let packed = zstd::bulk::compress(bytes, LEVEL).ok()?;
    let length = bytes.len();
    Some(format!(
        "{length}{SEPARATOR}{}",
        STANDARD_NO_PAD.encode(packed)
    ))
}

fn decompressed(text: &str) -> Option<Vec<u8>> {
    let (length, packed) = text.split_once(SEPARATOR)?;
    let length: usize = length.parse().ok()?;
    let packed = STANDARD_NO_PAD.decode(packed).ok()?;
    let bytes = zstd::bulk::decompress(&packed, length.min(MAX_BYTES)).ok()?;
    (bytes.len() == length).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers, the same at every run.
    fn numbers() -> impl FnMut(u64) -> u64 {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        move |below| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        }
    }

    /// A step of so many nodes, each with some thousand requests of eight durations, by twelve routes.
    fn step(nodes: u64) -> StepTraffic {
        let mut number = numbers();
        let mut step = StepTraffic::default();
        for _ in 0..nodes {
            let id = (u128::from(number(1 << 31)) << 70) | u128::from(number(1 << 31));
            let routes = (0..12).map(|route| {
                let mut counted = CountedRequests::default();
                for bucket in counted.latency.iter_mut().take(8) {
                    *bucket = number(900);
                }
                counted.requests = counted.latency.iter().sum();
                counted.errors = number(9);
                (format!("route-{route}"), counted)
            });
            let routes = RouteCounts {
                routes: routes.collect(),
            };
            step.count(NodeId(Uuid::from_u128(id)), &routes);
        }
        step
    }

    #[test]
    fn a_step_of_a_thousand_nodes_has_less_than_fifty_kilobytes() {
        let step = step(1_000);
        let columns = StepColumns::new(&step).unwrap();
        println!("{} bytes", columns.bytes());
        assert!(columns.bytes() < 50_000, "{} bytes", columns.bytes());
        assert_eq!(columns.traffic().unwrap(), step);
        let total = StepColumns::total(&columns.routes).unwrap();
        assert_eq!(total, step.routes.total());
    }

    #[test]
    fn an_empty_step_and_the_largest_counts_are_read_as_they_were_written() {
        let mut largest = StepTraffic::default();
        let counted = CountedRequests::from([u64::MAX; REQUEST_COUNTS]);
        largest.nodes.insert(NodeId(Uuid::max()), counted);
        for step in [StepTraffic::default(), largest] {
            let columns = StepColumns::new(&step).unwrap();
            assert_eq!(columns.traffic().unwrap(), step);
        }
    }

    #[test]
    fn a_damaged_column_is_an_error() {
        let good = StepColumns::new(&step(3)).unwrap();
        let long = compressed(&[0; 20]).unwrap();
        let endless = compressed(&[0xff; 40]).unwrap();
        for nodes in ["", "5", "5:", "5:AAAA", &long, &endless] {
            let columns = StepColumns {
                nodes: nodes.to_owned(),
                ..good.clone()
            };
            assert!(columns.traffic().is_err(), "{nodes}");
            assert!(StepColumns::total(nodes).is_err(), "{nodes}");
        }
    }
}
