//! The extensions of a chunk, byte by byte.

use crate::chars;

/// State of reading one chunk's `*( BWS ";" BWS name [ BWS "=" BWS value ] )`. [RFC 9112 §7.1.1]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extension {
    /// Whitespace before a semicolon.
    Gap,
    /// Between a semicolon and a name.
    Before,
    Name,
    /// Whitespace after a name.
    NameGap,
    /// Between an equals sign and a value.
    Equals,
    Token,
    Quoted,
    /// After a backslash.
    Escaped,
    /// After a closing quote.
    Closed,
}

impl Extension {
    /// The state after `byte`; `None` if it is not allowed here.
    pub(crate) fn after(self, byte: u8) -> Option<Self> {
        let token = chars::is_token(byte);
        match (self, byte) {
            (Self::Quoted, b'"') => Some(Self::Closed),
            (Self::Quoted, b'\\') => Some(Self::Escaped),
            (Self::Quoted | Self::Escaped, _) => chars::is_value(byte).then_some(Self::Quoted),
            (Self::Before, b' ' | b'\t') => Some(Self::Before),
            (Self::Equals, b' ' | b'\t') => Some(Self::Equals),
            (Self::Name | Self::NameGap, b' ' | b'\t') => Some(Self::NameGap),
            (Self::Gap | Self::Token | Self::Closed, b' ' | b'\t') => Some(Self::Gap),
            (Self::Before | Self::Name, _) if token => Some(Self::Name),
            (Self::Equals | Self::Token, _) if token => Some(Self::Token),
            (Self::Equals, b'"') => Some(Self::Quoted),
            (Self::Name | Self::NameGap, b'=') => Some(Self::Equals),
            (Self::Before | Self::Equals, _) => None,
            (_, b';') => Some(Self::Before),
            _ => None,
        }
    }

    /// Returns true if the chunk's line may end in this state.
    pub(crate) fn may_end(self) -> bool {
        matches!(self, Self::Name | Self::Token | Self::Closed)
    }
}
