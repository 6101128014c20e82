//! The streams that their client has opened and not ended.

/// The streams of one connection that their client has opened and not ended, in ascending order.
///
/// A stream reset by the server stays here if its client never ends it. Above the maximum number of
/// streams the lowest is dropped, and every stream up to it counts as open: trailers of a long
/// upload are never refused.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenStreams {
    streams: Vec<u32>,
    /// The highest dropped stream; zero if there is none.
    dropped: u32,
}

/// Far above the number of streams that a server lets one client open at once.
const MAX_STREAMS: usize = 1024;

impl OpenStreams {
    /// Adds `stream`, which is higher than those before.
    pub(super) fn insert(&mut self, stream: u32) {
        if self.streams.len() == MAX_STREAMS {
            self.dropped = self.streams.remove(0);
        }
        self.streams.push(stream);
    }

    pub(super) fn remove(&mut self, stream: u32) {
        if let Ok(position) = self.streams.binary_search(&stream) {
            self.streams.remove(position);
        }
    }

    pub(super) fn contains(&self, stream: u32) -> bool {
        (1..=self.dropped).contains(&stream) || self.streams.binary_search(&stream).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_up_to_a_dropped_one_count_as_open() {
        let mut open = OpenStreams::default();
        for stream in (3..).step_by(2).take(MAX_STREAMS) {
            open.insert(stream);
        }
        assert!(!open.contains(0) && !open.contains(1) && open.contains(3));

        open.insert(9_999);
        assert!(!open.contains(0) && open.contains(1) && open.contains(3));
        open.remove(5);
        assert!(!open.contains(5) && open.contains(7) && open.contains(9_999));
    }
}
