//! A set of ASCII characters with a test of a few instructions.

/// A set of the 128 ASCII characters; other bytes are never members.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteSet {
    low: u64,
    high: u64,
}

impl ByteSet {
    /// The characters of `members`.
    pub(crate) const fn new(members: &[u8]) -> Self {
        let mut set = Self { low: 0, high: 0 };
        let mut rest = members;
        while let [byte, tail @ ..] = rest {
            let bit = 1 << (*byte % 64);
            match *byte {
                0..64 => set.low |= bit,
                64..128 => set.high |= bit,
                128.. => {}
            }
            rest = tail;
        }
        set
    }

    #[inline]
    pub(crate) const fn has(self, byte: u8) -> bool {
        let half = if byte & 64 == 0 { self.low } else { self.high };
        byte < 128 && (half >> (byte % 64)) & 1 == 1
    }
}
