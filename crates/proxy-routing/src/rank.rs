//! Which of two matching rules wins.

/// The comparison that one rule won over another, in the order they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// Its priority is higher.
    Priority,
    /// Its path is more specific: exact, then longer prefix, then regex, then none.
    Path,
    /// Its host is more specific: exact, then longer wildcard, then none.
    Host,
    /// More of its header conditions hold.
    Headers,
    /// It stands earlier in the configuration.
    Order,
}
