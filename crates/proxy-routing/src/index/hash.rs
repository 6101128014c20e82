//! An incremental hash: one pass over a text returns the hashes of all its prefixes.

/// FNV-1a, 64 bits. Clients cannot provoke collisions, because keys are from the configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hash(u64);

impl Hash {
    pub(super) const fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    pub(super) fn from_bytes(bytes: impl IntoIterator<Item = u8>) -> Self {
        Self::new().extend(bytes)
    }

    #[inline]
    pub(super) fn push(self, byte: u8) -> Self {
        Self((self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
    }

    pub(super) fn extend(self, bytes: impl IntoIterator<Item = u8>) -> Self {
        bytes.into_iter().fold(self, Self::push)
    }

    /// The hash with its bits mixed, so that any of them can select a slot.
    #[inline]
    pub(super) const fn finish(self) -> u64 {
        let folded = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        folded ^ (folded >> 29)
    }
}
