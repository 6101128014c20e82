//! The content codings that the proxy chooses among.

use http::HeaderValue;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `br`. [RFC 7932]
    Brotli,
    /// `zstd`. [RFC 8878]
    Zstd,
    /// `gzip`. [RFC 1952]
    Gzip,
}

impl Coding {
    /// The name in header fields.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The name as the value of `Content-Encoding`.
    pub const fn value(self) -> HeaderValue {
        HeaderValue::from_static(self.name())
    }

    /// Names of the coding in header fields.
    pub(crate) const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Brotli => &["br"],
            Self::Zstd => &["zstd"],
            Self::Gzip => &["gzip", "x-gzip"],
        }
    }
}
