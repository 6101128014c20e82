//! A buffered body. Its memory is proportional to its bytes, however small its pieces are.

use bytes::{Bytes, BytesMut};
use proxy_errors::{Detail, Problem, Reason};
use proxy_limits::{BodyMemoryFull, BodyReservation};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Size of a block, in bytes: the first ones of a body are smaller.
const MAX_BLOCK_BYTES: usize = 64 << 10;

/// Size of the smallest block, in bytes.
const MIN_BLOCK_BYTES: usize = 512;

/// Memory is reserved in multiples of this, in bytes.
const RESERVED_AT_ONCE: u64 = 4 << 10;

/// The bytes of a body, copied into blocks: a piece that is kept instead would keep the whole
/// buffer of its connection.
#[derive(Debug, Default)]
pub(crate) struct BodyBuffer {
    blocks: VecDeque<Bytes>,
    last: BytesMut,
    bytes: u64,
    reserved: u64,
    /// Counts the bytes against the limit on bodies; `None` for a body that does not count.
    reservation: Option<Rc<BodyReservation>>,
}

impl BodyBuffer {
    /// An empty buffer that counts in `reservation`.
    pub(crate) fn new(reservation: Rc<BodyReservation>) -> Self {
        Self {
            reservation: Some(reservation),
            ..Self::default()
        }
    }

    /// Appends `data`. `waker` is woken when the body is evicted.
    pub(crate) fn push(&mut self, data: &[u8], waker: &Waker) -> Result<(), BodyMemoryFull> {
        let wanted = self.bytes + data.len() as u64;
        if let Some(reservation) = &self.reservation
            && wanted > self.reserved
        {
            let more = (wanted - self.reserved).next_multiple_of(RESERVED_AT_ONCE);
            reservation.grow(more, Some(waker))?;
            self.reserved += more;
        }
        self.append(data);
        Ok(())
    }

    /// Appends `data` without counting it.
    pub(crate) fn append(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let room = self.last.capacity() - self.last.len();
            if room == 0 {
                self.begin_block(data.len());
                continue;
            }
            let (piece, rest) = data.split_at(room.min(data.len()));
            self.last.extend_from_slice(piece);
            self.bytes += piece.len() as u64;
            data = rest;
        }
    }

    fn begin_block(&mut self, wanted: usize) {
        let so_far = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        let size = wanted.max(so_far).clamp(MIN_BLOCK_BYTES, MAX_BLOCK_BYTES);
        let full = std::mem::replace(&mut self.last, BytesMut::with_capacity(size));
        if !full.is_empty() {
            self.blocks.push_back(full.freeze());
        }
    }

    /// Takes the next block.
    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        let block = self.blocks.pop_front().or_else(|| {
            let last = std::mem::take(&mut self.last);
            (!last.is_empty()).then(|| last.freeze())
        })?;
        self.bytes -= block.len() as u64;
        Some(block)
    }

    /// Bytes in the buffer.
    pub(crate) fn len(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns true if the body must end, to free memory for smaller ones.
    pub(crate) fn is_evicted(&self) -> bool {
        let reservation = self.reservation.as_ref();
        reservation.is_some_and(|reservation| reservation.is_evicted())
    }

    /// Ready when the body may be read on.
    #[inline]
    pub(crate) fn poll_room(&self, waker: &Waker) -> Poll<()> {
        match &self.reservation {
            Some(reservation) => reservation.poll_room(waker),
            None => Poll::Ready(()),
        }
    }

    /// Excludes the body from eviction, because it was read completely.
    pub(crate) fn settle(&self) {
        if let Some(reservation) = &self.reservation {
            reservation.settle();
        }
    }
}

pub(crate) fn memory_problem() -> Problem {
    Problem::new(Reason::MemoryPressure, Detail::None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_limits::BodyMemory;
    use std::sync::Arc;

    fn buffer(memory: &Arc<BodyMemory>) -> BodyBuffer {
        BodyBuffer::new(Rc::new(BodyReservation::new(memory)))
    }

    #[test]
    fn one_byte_pieces_use_memory_in_proportion() {
        const BYTES: u64 = 100_000;
        let memory = Arc::new(BodyMemory::default());
        let mut body = buffer(&memory);
        for index in 0..BYTES {
            body.push(&[(index % 251) as u8], Waker::noop()).unwrap();
        }

        assert_eq!(body.len(), BYTES);
        assert!(memory.held_bytes() < BYTES + RESERVED_AT_ONCE);
        let mut blocks = Vec::new();
        while let Some(block) = body.pop() {
            blocks.push(block);
        }
        assert!(blocks.len() < 12, "{}", blocks.len());
        let whole = blocks.concat();
        let expected = (0..BYTES).map(|index| (index % 251) as u8);
        assert!(whole.into_iter().eq(expected));
        drop(body);
        assert_eq!(memory.held_bytes(), 0);
    }

    #[test]
    fn a_body_without_memory_left_is_unchanged() {
        let memory = Arc::new(BodyMemory::default());
        let mut body = buffer(&memory);
        body.push(b"abc", Waker::noop()).unwrap();
        memory.set_max(RESERVED_AT_ONCE);

        let pushed = body.push(&[0; 4_096], Waker::noop());

        assert_eq!(pushed, Err(BodyMemoryFull));
        assert_eq!(body.pop().as_deref(), Some(&b"abc"[..]));
        assert!(body.is_empty());
    }
}
