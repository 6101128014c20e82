//! The field names that framing depends on, matched whole or byte by byte.

/// A field with a value that the validators read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownField {
    /// Any other field.
    Other,
    Host,
    Upgrade,
    Connection,
    ContentLength,
    CorrelationId,
    TransferEncoding,
}

const HOST: &[u8; 4] = b"host";
const UPGRADE: &[u8; 7] = b"upgrade";
const CONNECTION: &[u8; 10] = b"connection";
const CONTENT_LENGTH: &[u8; 14] = b"content-length";
const CORRELATION_ID: &[u8; 16] = b"x-correlation-id";
const TRANSFER_ENCODING: &[u8; 17] = b"transfer-encoding";

/// Returns false if the name of `len` bytes at the beginning of `line` cannot be a known one, by
/// its length and first letter.
#[inline]
pub(crate) fn looks_known(line: &[u8], len: usize) -> bool {
    matches!(len, 4 | 7 | 10 | 14 | 16 | 17)
        && line
            .first()
            .is_some_and(|first| matches!(first | 0x20, b'c' | b'h' | b't' | b'u' | b'x'))
}

/// The field of a whole name; the name must be a token.
pub(crate) fn known(name: &[u8]) -> KnownField {
    match name.len() {
        4 if same(name, HOST) => KnownField::Host,
        7 if same(name, UPGRADE) => KnownField::Upgrade,
        10 if same(name, CONNECTION) => KnownField::Connection,
        14 if same(name, CONTENT_LENGTH) => KnownField::ContentLength,
        16 if same(name, CORRELATION_ID) => KnownField::CorrelationId,
        17 if same(name, TRANSFER_ENCODING) => KnownField::TransferEncoding,
        _ => KnownField::Other,
    }
}

/// Returns true if `name`, of an accepted field, is `lower` when case is ignored. `lower` must
/// consist of lower-case letters, digits and `-`.
#[inline]
#[must_use]
pub fn is_name<const N: usize>(name: &[u8], lower: &[u8; N]) -> bool {
    same(name, lower)
}

/// Returns true if `text`, which has no control bytes, equals `lower` case-insensitively.
///
/// `lower` must consist of lower-case letters, digits and `-`: only a control byte could become one
/// of these by setting the bit that distinguishes lower from upper case.
#[inline]
#[expect(
    clippy::indexing_slicing,
    reason = "both arrays have N bytes; the compiler unrolls this loop and no iterator's"
)]
pub(crate) fn same<const N: usize>(text: &[u8], lower: &[u8; N]) -> bool {
    let Ok(text) = <&[u8; N]>::try_from(text) else {
        return false;
    };
    let (mut differ, mut at) = (0, 0);
    while at < N {
        differ |= (text[at] | 0x20) ^ lower[at];
        at += 1;
    }
    differ == 0
}

const SPELLINGS: [(&[u8], KnownField); 6] = [
    (HOST, KnownField::Host),
    (UPGRADE, KnownField::Upgrade),
    (CONNECTION, KnownField::Connection),
    (CONTENT_LENGTH, KnownField::ContentLength),
    (CORRELATION_ID, KnownField::CorrelationId),
    (TRANSFER_ENCODING, KnownField::TransferEncoding),
];

/// The names that begin with the letters read, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidates(u8);

impl Candidates {
    pub(crate) const ALL: Self = Self(0b11_1111);

    /// Removes the names that do not have `byte` at `place`.
    pub(crate) fn narrow(&mut self, place: u32, byte: u8) {
        if self.0 == 0 {
            return;
        }
        let byte = byte.to_ascii_lowercase();
        for (bit, (spelling, _)) in SPELLINGS.iter().enumerate() {
            if spelling.get(place as usize) != Some(&byte) {
                self.0 &= !(1 << bit);
            }
        }
    }

    /// The field of a name of `len` bytes, all of them read.
    pub(crate) fn known(self, len: u32) -> KnownField {
        let found = SPELLINGS.iter().enumerate().find(|(bit, (spelling, _))| {
            self.0 & (1 << bit) != 0 && spelling.len() == len as usize
        });
        found.map_or(KnownField::Other, |(_, (_, known))| *known)
    }
}
