//! The field names that framing depends on, told whole or letter by letter.

/// A field whose value a guard must understand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
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

/// Whether the name of `len` bytes that leads `line` may be one of those that matter.
#[inline]
pub(crate) fn looks_known(line: &[u8], len: usize) -> bool {
    matches!(len, 4 | 7 | 10 | 14 | 16 | 17)
        && line
            .first()
            .is_some_and(|first| matches!(first | 0x20, b'c' | b'h' | b't' | b'u' | b'x'))
}

/// Which field a whole name means; the name must be a token.
pub(crate) fn known(name: &[u8]) -> Known {
    match name.len() {
        4 if same(name, HOST) => Known::Host,
        7 if same(name, UPGRADE) => Known::Upgrade,
        10 if same(name, CONNECTION) => Known::Connection,
        14 if same(name, CONTENT_LENGTH) => Known::ContentLength,
        16 if same(name, CORRELATION_ID) => Known::CorrelationId,
        17 if same(name, TRANSFER_ENCODING) => Known::TransferEncoding,
        _ => Known::Other,
    }
}

/// Whether `text`, which has no control bytes, is `lower` but for its case.
///
/// `lower` must consist of small letters and `-`: nothing but a control byte becomes one of these
/// by setting the bit that tells small letters from capitals.
#[inline]
pub(crate) fn same<const N: usize>(text: &[u8], lower: &[u8; N]) -> bool {
    let Ok(text) = <&[u8; N]>::try_from(text) else {
        return false;
    };
    let differ = |differ, (a, b): (&u8, &u8)| differ | ((a | 0x20) ^ b);
    text.iter().zip(lower).fold(0, differ) == 0
}

const SPELLINGS: [(&[u8], Known); 6] = [
    (HOST, Known::Host),
    (UPGRADE, Known::Upgrade),
    (CONNECTION, Known::Connection),
    (CONTENT_LENGTH, Known::ContentLength),
    (CORRELATION_ID, Known::CorrelationId),
    (TRANSFER_ENCODING, Known::TransferEncoding),
];

/// The names that the letters so far can still become, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidates(u8);

impl Candidates {
    pub(crate) const ALL: Self = Self(0b11_1111);

    /// Strikes the names that do not have `byte` at `place`.
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

    /// Which field a name of `len` bytes means, all of them seen.
    pub(crate) fn known(self, len: u32) -> Known {
        let found = SPELLINGS.iter().enumerate().find(|(bit, (spelling, _))| {
            self.0 & (1 << bit) != 0 && spelling.len() == len as usize
        });
        found.map_or(Known::Other, |(_, (_, known))| *known)
    }
}
