//! The client's own correlation ID, remembered until the head proves good.

use crate::chars;

const MAX_ID_CHARS: usize = 128;

/// The value of the first `X-Correlation-Id` of the present head.
///
/// Where it lies in the present piece is all that is remembered at first; only when the head ends
/// badly, or goes on in the next piece, is it copied.
#[derive(Debug, Default)]
pub(crate) enum Correlation {
    #[default]
    Absent,
    /// In the present piece, from one place to another.
    Here {
        start: u32,
        end: u32,
    },
    Kept(Box<Kept>),
}

#[derive(Debug)]
pub(crate) struct Kept {
    state: State,
    len: u8,
    bytes: [u8; MAX_ID_CHARS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Whitespace came after the value; nothing else may.
    Gap,
    Usable,
    Useless,
}

impl Correlation {
    /// Remembers a whole value by its place; only the first of a head counts.
    pub(crate) fn found(&mut self, start: usize, end: usize) {
        let place = (u32::try_from(start), u32::try_from(end));
        if let (Self::Absent, (Ok(start), Ok(end))) = (&*self, place) {
            *self = Self::Here { start, end };
        }
    }

    /// Forgets the value: its head was good.
    #[inline]
    pub(crate) fn forget(&mut self) {
        if !matches!(self, Self::Absent) {
            *self = Self::Absent;
        }
    }

    /// Makes ready for a value that comes byte by byte; false when there is one already.
    pub(crate) fn open(&mut self) -> bool {
        let first = matches!(self, Self::Absent);
        if first {
            *self = Self::Kept(Box::new(Kept::new()));
        }
        first
    }

    /// Takes one byte of the value that was opened.
    pub(crate) fn push(&mut self, byte: u8) {
        if let Self::Kept(kept) = self {
            kept.push(byte);
        }
    }

    /// Ends the value that was opened.
    pub(crate) fn close(&mut self) {
        if let Self::Kept(kept) = self {
            kept.close();
        }
    }

    /// Copies the value out of `piece`, which goes away.
    pub(crate) fn keep(&mut self, piece: &[u8]) {
        let Self::Here { start, end } = *self else {
            return;
        };
        let mut kept = Box::new(Kept::new());
        let value = piece.get(start as usize..end as usize).unwrap_or_default();
        value
            .trim_ascii_start()
            .iter()
            .for_each(|&byte| kept.push(byte));
        kept.close();
        *self = Self::Kept(kept);
    }

    /// The value, when it was complete and of 1 to 128 characters `[A-Za-z0-9._-]`.
    pub(crate) fn value(&self) -> Option<&[u8]> {
        match self {
            Self::Kept(kept) if kept.state == State::Usable => {
                kept.bytes.get(..usize::from(kept.len))
            }
            Self::Kept(_) | Self::Absent | Self::Here { .. } => None,
        }
    }
}

impl Kept {
    const fn new() -> Self {
        Self {
            state: State::Open,
            len: 0,
            bytes: [0; MAX_ID_CHARS],
        }
    }

    fn push(&mut self, byte: u8) {
        let good = byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let slot = self.bytes.get_mut(usize::from(self.len));
        match (self.state, slot) {
            (State::Open, Some(slot)) if good => {
                *slot = byte;
                self.len += 1;
            }
            (State::Open | State::Gap, _) if chars::is_space(byte) => self.state = State::Gap,
            _ => self.state = State::Useless,
        }
    }

    fn close(&mut self) {
        let good = 0 < self.len && matches!(self.state, State::Open | State::Gap);
        self.state = if good { State::Usable } else { State::Useless };
    }
}
