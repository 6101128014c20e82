//! Groups of metrics.

/// A group of metrics that can be summed over workers.
pub(crate) trait MetricGroup: Default {
    /// The sum of such groups.
    type Total: Clone + Default;

    /// Adds the current values to `total`.
    fn add_to(&self, total: &mut Self::Total);
}
