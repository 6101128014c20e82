//! Exemplars: traces of single requests in the buckets of a route's durations.

use super::histogram::{BUCKET_COUNT, bucket};
use crate::vocabulary::{SpanId, TraceId};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A request of a sampled trace, in one bucket of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exemplar {
    /// Trace of the request.
    pub trace_id: TraceId,
    /// Span of the request.
    pub span_id: SpanId,
    /// Duration of the request.
    pub took: Duration,
    /// End of the request, since 1970.
    pub at: Duration,
}

/// The newest exemplar of each bucket.
pub(crate) type BucketExemplars = [Option<Exemplar>; BUCKET_COUNT];

/// Exemplars by route. Written by the exporter of spans, so that requests pay nothing for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exemplars(HashMap<Arc<str>, Box<BucketExemplars>>);

impl Exemplars {
    /// Replaces the exemplar of its bucket. At most `max` routes have exemplars.
    pub(crate) fn set(&mut self, route: &str, exemplar: Exemplar, max: usize) {
        if !self.0.contains_key(route) {
            if max <= self.0.len() {
                return;
            }
            self.0.insert(route.into(), Box::new([None; BUCKET_COUNT]));
        }
        let buckets = self.0.get_mut(route);
        if let Some(slot) = buckets.and_then(|all| all.get_mut(bucket(exemplar.took))) {
            *slot = Some(exemplar);
        }
    }

    /// The exemplars of a route.
    pub(crate) fn route(&self, id: &str) -> Option<&BucketExemplars> {
        self.0.get(id).map(|buckets| &**buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_keeps_its_newest_exemplar_and_routes_are_bounded() {
        let exemplar = |millis| Exemplar {
            trace_id: [b'1'; 32],
            span_id: [b'1'; 16],
            took: Duration::from_millis(millis),
            at: Duration::from_secs(millis),
        };
        let mut exemplars = Exemplars::default();
        for (route, millis) in [("a", 60), ("a", 70), ("a", 200), ("b", 1)] {
            exemplars.set(route, exemplar(millis), 1);
        }
        let kept = exemplars.route("a").unwrap();
        let kept: Vec<_> = kept.iter().flatten().copied().collect();
        assert_eq!(kept, [exemplar(70), exemplar(200)]);
        assert_eq!(exemplars.route("b"), None);
    }
}
