//! The correlation ID of a head that may still be refused.

use crate::chars;

const MAX_ID_CHARS: usize = 128;

/// The value of the first `X-Correlation-Id` of the present head.
///
/// At first only its position in the current piece is kept. It is copied if the head is refused or
/// continues in the next piece.
#[derive(Debug, Default)]
pub(crate) enum Correlation {
    #[default]
    Absent,
    /// Range in the current piece.
    Here {
        start: u32,
        end: u32,
    },
    StoredId(Box<StoredId>),
}

#[derive(Debug)]
pub(crate) struct StoredId {
    state: IdState,
    len: u8,
    bytes: [u8; MAX_ID_CHARS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdState {
    Open,
    /// White space after the value; no other byte may follow.
    Gap,
    Usable,
    Useless,
}

impl Correlation {
    /// Keeps the range of a whole value; only the first of a head counts.
    pub(crate) fn set_range(&mut self, start: usize, end: usize) {
        let place = (u32::try_from(start), u32::try_from(end));
        if let (Self::Absent, (Ok(start), Ok(end))) = (&*self, place) {
            *self = Self::Here { start, end };
        }
    }

    /// Drops the value, because its head was accepted.
    #[inline]
    pub(crate) fn forget(&mut self) {
        if !matches!(self, Self::Absent) {
            *self = Self::Absent;
        }
    }

    /// Prepares for a value read byte by byte; false if the head has one already.
    pub(crate) fn open(&mut self) -> bool {
        let first = matches!(self, Self::Absent);
        if first {
            *self = Self::StoredId(Box::new(StoredId::new()));
        }
        first
    }

    /// Appends one byte to the opened value.
    pub(crate) fn push(&mut self, byte: u8) {
        if let Self::StoredId(kept) = self {
            kept.push(byte);
        }
    }

    /// Ends the opened value.
    pub(crate) fn close(&mut self) {
        if let Self::StoredId(kept) = self {
            kept.close();
        }
    }

    /// Copies the value from `piece`, which is about to be dropped.
    pub(crate) fn copy_from(&mut self, piece: &[u8]) {
        let Self::Here { start, end } = *self else {
            return;
        };
        let mut kept = Box::new(StoredId::new());
        let value = piece.get(start as usize..end as usize).unwrap_or_default();
        value
            .trim_ascii_start()
            .iter()
            .for_each(|&byte| kept.push(byte));
        kept.close();
        *self = Self::StoredId(kept);
    }

    /// The value, if it is complete and has 1 to 128 characters `[A-Za-z0-9._-]`.
    pub(crate) fn value(&self) -> Option<&[u8]> {
        match self {
            Self::StoredId(kept) if kept.state == IdState::Usable => {
                kept.bytes.get(..usize::from(kept.len))
            }
            Self::StoredId(_) | Self::Absent | Self::Here { .. } => None,
        }
    }
}

impl StoredId {
    const fn new() -> Self {
        Self {
            state: IdState::Open,
            len: 0,
            bytes: [0; MAX_ID_CHARS],
        }
    }

    fn push(&mut self, byte: u8) {
        let good = byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let slot = self.bytes.get_mut(usize::from(self.len));
        match (self.state, slot) {
            (IdState::Open, Some(slot)) if good => {
                *slot = byte;
                self.len += 1;
            }
            (IdState::Open | IdState::Gap, _) if chars::is_space(byte) => self.state = IdState::Gap,
            _ => self.state = IdState::Useless,
        }
    }

    fn close(&mut self) {
        let good = 0 < self.len && matches!(self.state, IdState::Open | IdState::Gap);
        self.state = if good {
            IdState::Usable
        } else {
            IdState::Useless
        };
    }
}
