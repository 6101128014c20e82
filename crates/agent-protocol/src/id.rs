//! The id of a request on one connection.

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Identifies a request on one connection between proxy and agent. The proxy counts up from 1 and
/// never reuses a number on the same connection; 0 is the connection itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct RequestId(u64);

impl RequestId {
    /// The connection itself: its handshake, its errors, its end.
    pub const CONNECTION: Self = Self(0);
    /// Greatest id: the greatest integer that every JSON reader keeps exactly.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// The id with this number; `None` above [`RequestId::MAX`].
    pub fn new(number: u64) -> Option<Self> {
        (number <= Self::MAX.0).then_some(Self(number))
    }

    /// The number on the wire; 0 is the connection itself.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(deserializer)?;
        Self::new(number).ok_or_else(|| {
            D::Error::invalid_value(Unexpected::Unsigned(number), &"an id of at most 2^53 - 1")
        })
    }
}
