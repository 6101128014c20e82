//! The keys that the control plane publishes, as the node has them.

/// Age of the published keys that the node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PublishedKeys {
    /// A newer key may have been published since.
    MayBeStale,
    /// Fetched for this order.
    JustFetched,
}
