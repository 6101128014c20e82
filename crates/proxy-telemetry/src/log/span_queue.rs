//! The queue between workers and the exporter of spans.

use crate::metrics::SharedCounter;
use crate::record::RequestSpan;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, PoisonError};

/// Spans of finished requests, from any worker to the one exporter.
///
/// Bounded by a number of spans, which a reload may change; a span takes up to 4 KiB. A full queue
/// drops the newest request, and [`Self::push`] never waits: it takes no lock.
#[derive(Debug)]
pub struct SpanQueue {
    sender: Sender<Box<RequestSpan>>,
    receiver: ReceiverLock,
    /// Spans in the queue, attempts included.
    waiting: AtomicUsize,
    /// Maximum number of spans in the queue.
    capacity: AtomicUsize,
    dropped: Arc<SharedCounter>,
}

#[expect(
    clippy::disallowed_types,
    reason = "taken by the exporter alone, never by a worker"
)]
type ReceiverLock = std::sync::Mutex<Receiver<Box<RequestSpan>>>;

/// A queue without capacity.
impl Default for SpanQueue {
    fn default() -> Self {
        let (sender, receiver) = channel();
        Self {
            sender,
            receiver: ReceiverLock::new(receiver),
            waiting: AtomicUsize::new(0),
            capacity: AtomicUsize::new(0),
            dropped: Arc::default(),
        }
    }
}

impl SpanQueue {
    /// Appends `span`, or drops and counts it if the queue is full.
    pub fn push(&self, span: Box<RequestSpan>) {
        let spans = span.spans();
        let before = self.waiting.fetch_add(spans, Ordering::Relaxed);
        let has_room = before.saturating_add(spans) <= self.capacity.load(Ordering::Relaxed);
        if !has_room || self.sender.send(span).is_err() {
            self.waiting.fetch_sub(spans, Ordering::Relaxed);
            self.dropped.add(u64::try_from(spans).unwrap_or(u64::MAX));
        }
    }

    /// Takes requests with at least `spans` spans together, or all if there are fewer.
    pub fn take(&self, spans: usize) -> Vec<Box<RequestSpan>> {
        let receiver = self.receiver.lock();
        let receiver = receiver.unwrap_or_else(PoisonError::into_inner);
        let (mut taken, mut count) = (Vec::new(), 0);
        while count < spans
            && let Ok(span) = receiver.try_recv()
        {
            count += span.spans();
            taken.push(span);
        }
        self.waiting.fetch_sub(count, Ordering::Relaxed);
        taken
    }

    /// Number of spans in the queue.
    pub fn len(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns true if no span waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets the maximum number of waiting spans; 0 drops all. Spans that wait already stay.
    pub fn set_capacity(&self, spans: usize) {
        self.capacity.store(spans, Ordering::Relaxed);
    }

    /// The counter of spans that a full queue has dropped.
    pub fn dropped(&self) -> &Arc<SharedCounter> {
        &self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::AttemptSpan;
    use crate::vocabulary::Protocol;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    fn span(attempts: usize) -> Box<RequestSpan> {
        let attempt = AttemptSpan {
            span_id: [b'2'; 16],
            started: Duration::ZERO,
            ended: Duration::ZERO,
            upstream: "u".into(),
            target: "t".into(),
            status: None,
            error: None,
        };
        Box::new(RequestSpan {
            trace_id: [b'1'; 32],
            span_id: [b'1'; 16],
            parent_id: None,
            started: Duration::ZERO,
            ended: Duration::ZERO,
            method: "GET".into(),
            is_tls: false,
            path: "/".into(),
            query: None,
            authority: None,
            user_agent: None,
            protocol: Protocol::Http11,
            client_ip: Ipv4Addr::LOCALHOST.into(),
            peer_ip: Ipv4Addr::LOCALHOST.into(),
            correlation_id: "".into(),
            route: None,
            upstream: None,
            status: None,
            reason: None,
            is_error: false,
            bytes_in: 0,
            bytes_out: 0,
            queued: None,
            connecting: None,
            upstream_took: None,
            attempts: vec![attempt; attempts],
        })
    }

    #[test]
    fn a_full_queue_drops_the_newest_and_counts_its_spans() {
        let queue = SpanQueue::default();
        queue.push(span(0));
        assert_eq!((queue.len(), queue.dropped().get()), (0, 1));

        queue.set_capacity(3);
        queue.push(span(1));
        queue.push(span(1));
        queue.push(span(0));

        assert_eq!((queue.len(), queue.dropped().get()), (3, 3));
        assert_eq!(queue.take(1), [span(1)]);
        assert_eq!(queue.len(), 1);
        queue.push(span(1));
        assert_eq!(queue.take(usize::MAX), [span(0), span(1)]);
        assert!(queue.is_empty());
    }
}
