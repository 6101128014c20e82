//! What a case of a table is.

use proptest::prelude::ProptestConfig;
use proxy_framing::{FramingError, HeadLimits, RequestKind};

/// The limits of the tables: the defaults of the `limits` block.
pub(crate) const LIMITS: HeadLimits = HeadLimits {
    max_head_bytes: 8192,
    max_header_count: 100,
    max_name_bytes: 256,
    max_value_bytes: 4096,
    max_target_bytes: 8192,
};

/// How a guard must take the bytes of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All of them, and it is between two messages then.
    Whole,
    /// All of them, and more must follow.
    Open,
    /// It stops for an upgrade with so many bytes left.
    Upgrade(usize),
    /// It refuses them.
    Refused(FramingError),
}

/// A name that says what is special, the verdict, the bytes.
pub(crate) type RequestCase = (&'static str, Verdict, &'static [u8]);

/// A name that says what is special, what was asked, the verdict, the bytes.
pub(crate) type ResponseCase = (&'static str, RequestKind, Verdict, &'static [u8]);

/// So many tries of a property. What fails becomes a case of a table, not a file of seeds.
pub(crate) fn tries(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
