//! Types of the tables of cases.

use proptest::prelude::ProptestConfig;
use proxy_framing::{FramingError, HeadLimits, RequestKind};

/// The limits in the tables: the defaults of the `limits` block.
pub(crate) const LIMITS: HeadLimits = HeadLimits {
    max_head_bytes: 8192,
    max_header_count: 100,
    max_name_bytes: 256,
    max_value_bytes: 4096,
    max_target_bytes: 8192,
};

/// The expected result for the bytes of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All bytes are accepted, and end between two messages.
    Whole,
    /// All bytes are accepted, and more must follow.
    Open,
    /// The validator stops for an upgrade with this many bytes left.
    Upgrade(usize),
    /// The bytes are refused with this error.
    Refused(FramingError),
}

/// A name, the expected result, the bytes.
pub(crate) type RequestCase = (&'static str, Verdict, &'static [u8]);

/// A name, the kind of the request, the expected result, the bytes.
pub(crate) type ResponseCase = (&'static str, RequestKind, Verdict, &'static [u8]);

/// Number of random cases of a property. A failure becomes a case of a table, not a file of seeds.
pub(crate) fn tries(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
