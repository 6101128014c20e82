//! Bytes of HTTP that are written as text.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Bytes of a header value or a request target, which need not be UTF-8.
///
/// On the wire it is a string in which every character is one byte: U+0041 is the byte 0x41, U+00E9
/// is the byte 0xE9 (ISO 8859-1, as in WSGI and in the `ByteString` of browsers). A character above
/// U+00FF is refused. Every sequence of bytes has exactly one such string.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Text<'a>(pub Cow<'a, [u8]>);

impl Text<'_> {
    /// The bytes of the HTTP message, unchanged.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as a string where they are UTF-8, which includes all of ASCII.
    pub fn to_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Copies the bytes, so that the text has no lifetime.
    pub fn into_owned(self) -> Text<'static> {
        Text(Cow::Owned(self.0.into_owned()))
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text.as_bytes()))
    }
}

impl<'a> From<&'a [u8]> for Text<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self(Cow::Borrowed(bytes))
    }
}

impl From<String> for Text<'static> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text.into_bytes()))
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) if text.is_ascii() => serializer.serialize_str(text),
            _ => {
                let text: String = self.0.iter().map(|byte| char::from(*byte)).collect();
                serializer.serialize_str(&text)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Text<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor).map(Text)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Cow<'static, [u8]>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string of characters up to U+00FF")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        if text.is_ascii() {
            return Ok(Cow::Owned(text.as_bytes().to_vec()));
        }
        let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
        bytes
            .map(Cow::Owned)
            .map_err(|_| E::custom("a character above U+00FF"))
    }
}
