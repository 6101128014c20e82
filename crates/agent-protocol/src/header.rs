//! Headers, and the edits that an agent requests.

use crate::object::Object;
use crate::text::Text;
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use thiserror::Error;

/// Maximum of headers in a message.
pub const MAX_HEADERS: usize = 10_000;
/// Maximum of edits in a decision, of requests and of responses each.
pub const MAX_HEADER_EDITS: usize = 128;
/// Names that agents' edits and responses cannot change: framing, routing, and the proxy's own
/// fields.
pub const PROTECTED_NAMES: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-correlation-id",
];

/// Returns true if no agent may touch this header, given in lower case.
pub fn is_protected(name: &str) -> bool {
    PROTECTED_NAMES.contains(&name)
}

/// Reason to refuse a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum HeaderError {
    /// The name is empty, or has a byte that is not of a token (RFC 9110, section 5.1).
    #[error("a header name that is not a token")]
    Name,
    /// The value has a control character, or white space at its ends.
    #[error("a header value with a control character or white space at its ends")]
    Value,
}

/// One header line: a list of name and value on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Header<'a> {
    name: Cow<'a, str>,
    value: Text<'a>,
}

impl<'a> Header<'a> {
    /// A header of an agent. The name is changed to lower case.
    ///
    /// # Errors
    /// [`HeaderError`] if the name or the value is malformed.
    pub fn new(
        name: impl Into<Cow<'a, str>>,
        value: impl Into<Text<'a>>,
    ) -> Result<Self, HeaderError> {
        let (name, value) = (lower_name(name.into())?, value.into());
        if !is_value(&value.0) {
            return Err(HeaderError::Value);
        }
        Ok(Self { name, value })
    }

    /// A header that was parsed already: a name in lower case and a valid value.
    pub fn parsed(name: &'a str, value: &'a [u8]) -> Self {
        Self {
            name: Cow::Borrowed(name),
            value: Text(Cow::Borrowed(value)),
        }
    }

    /// The name, in lower case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of the value, without white space at the ends.
    pub fn value(&self) -> &Text<'a> {
        &self.value
    }
}

fn lower_name(name: Cow<'_, str>) -> Result<Cow<'_, str>, HeaderError> {
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(HeaderError::Name);
    }
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Ok(Cow::Owned(name.to_ascii_lowercase()));
    }
    Ok(name)
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_value(value: &[u8]) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let is_plain = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
    value.iter().all(is_plain) && !is_blank(value.first()) && !is_blank(value.last())
}

impl Serialize for Header<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut pair = serializer.serialize_tuple(2)?;
        pair.serialize_element(&self.name)?;
        pair.serialize_element(&self.value)?;
        pair.end()
    }
}

impl<'de> Deserialize<'de> for Header<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (name, value) = <(String, Text<'static>)>::deserialize(deserializer)?;
        Self::new(name, value).map_err(serde::de::Error::custom)
    }
}

/// A change of headers. Edits are applied in their order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "EditFields", try_from = "Object<EditFields>")]
pub enum HeaderEdit {
    /// Replaces all lines of the name by one.
    Set(Header<'static>),
    /// Appends a line.
    Add(Header<'static>),
    /// Removes all lines of the name.
    Remove(RemovedName),
}

/// A header name in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RemovedName(String);

impl RemovedName {
    /// The name, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl HeaderEdit {
    /// Replaces all lines of `name` by one.
    ///
    /// # Errors
    /// [`HeaderError`] if the name or the value is malformed.
    pub fn set(
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Text<'static>>,
    ) -> Result<Self, HeaderError> {
        Header::new(name, value).map(Self::Set)
    }

    /// Appends a line.
    ///
    /// # Errors
    /// [`HeaderError`] if the name or the value is malformed.
    pub fn add(
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Text<'static>>,
    ) -> Result<Self, HeaderError> {
        Header::new(name, value).map(Self::Add)
    }

    /// Removes all lines of `name`.
    ///
    /// # Errors
    /// [`HeaderError`] if the name is malformed.
    pub fn remove(name: impl Into<Cow<'static, str>>) -> Result<Self, HeaderError> {
        let name = lower_name(name.into())?;
        Ok(Self::Remove(RemovedName(name.into_owned())))
    }

    /// The name that it changes, in lower case.
    pub fn name(&self) -> &str {
        match self {
            Self::Set(header) | Self::Add(header) => header.name(),
            Self::Remove(name) => name.as_str(),
        }
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Operation {
    Set,
    Add,
    Remove,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EditFields {
    op: Operation,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Text<'static>>,
}

impl From<HeaderEdit> for EditFields {
    fn from(edit: HeaderEdit) -> Self {
        let with_value = |op, header: Header<'static>| Self {
            op,
            name: header.name.into_owned(),
            value: Some(header.value),
        };
        match edit {
            HeaderEdit::Set(header) => with_value(Operation::Set, header),
            HeaderEdit::Add(header) => with_value(Operation::Add, header),
            HeaderEdit::Remove(name) => Self {
                op: Operation::Remove,
                name: name.0,
                value: None,
            },
        }
    }
}

impl TryFrom<Object<EditFields>> for HeaderEdit {
    type Error = String;

    fn try_from(Object(fields): Object<EditFields>) -> Result<Self, String> {
        let EditFields { op, name, value } = fields;
        let edit = match (op, value) {
            (Operation::Set, Some(value)) => Self::set(name, value),
            (Operation::Add, Some(value)) => Self::add(name, value),
            (Operation::Remove, None) => Self::remove(name),
            (Operation::Set | Operation::Add, None) => {
                return Err("an edit without value".to_owned());
            }
            (Operation::Remove, Some(_)) => return Err("a removal with a value".to_owned()),
        };
        edit.map_err(|error| error.to_string())
    }
}
