//! Freshness of the published keys.

/// Freshness of the published keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PublishedKeys {
    /// A newer key may have been published since they were fetched.
    MayBeStale,
    /// They were fetched for this order.
    JustFetched,
}
