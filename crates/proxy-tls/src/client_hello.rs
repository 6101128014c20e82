//! Parsing of a `ClientHello`, for relays that do not terminate TLS.
//!
//! Only the framing and the server name are read. All else, such as versions, suites and signature
//! algorithms, is between the client and the target, which may support what this program does not.

use self::ClientHelloError::{Malformed, TooLong};
use std::net::IpAddr;

/// Maximum size of a `ClientHello`, including its records.
pub const MAX_CLIENT_HELLO_BYTES: usize = 16 * 1024;

/// Content type of handshake records. [RFC 8446 §5.1]
const HANDSHAKE: u8 = 22;
/// Major version in records and messages of SSL 3.0 and all versions of TLS.
const MAJOR_VERSION: u8 = 3;
/// Maximum length of a record's contents.
const MAX_RECORD_BYTES: usize = 1 << 14;
const RECORD_HEADER_BYTES: usize = 5;
/// Type and length of a handshake message. [RFC 8446 §4]
const MESSAGE_HEADER_BYTES: usize = 4;
/// Type of the `ClientHello` message.
const CLIENT_HELLO: u8 = 1;
const RANDOM_BYTES: usize = 32;
const MAX_SESSION_ID_BYTES: usize = 32;
/// Type of the extension `server_name`. [RFC 6066 §3]
const SERVER_NAME: u16 = 0;
/// Type of DNS names in that extension.
const HOST_NAME: u8 = 0;
/// Maximum length of a DNS name.
const MAX_NAME_BYTES: usize = 253;

/// Incremental parser for a `ClientHello` in one or several records. The caller keeps the bytes, to
/// forward them.
#[derive(Debug, Default)]
pub struct ClientHelloReader {
    /// Number of bytes read.
    taken: usize,
    /// Header of the record, as far as it is read; empty within a record's contents.
    header: Vec<u8>,
    /// Unread bytes of the record's contents.
    left: usize,
    /// The handshake message, as far as it is read.
    message: Vec<u8>,
}

/// Contents of a complete `ClientHello`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHello {
    /// Server name in lower case, without a dot at its end; `None` without SNI, and for a name that
    /// is no DNS name, such as an IP address. With Encrypted Client Hello, it is the outer name.
    pub server_name: Option<Box<str>>,
}

/// Reason why the bytes are not a `ClientHello`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientHelloError {
    /// The `ClientHello` exceeds [`MAX_CLIENT_HELLO_BYTES`].
    #[error("the ClientHello is longer than {MAX_CLIENT_HELLO_BYTES} bytes")]
    TooLong,
    /// The bytes are malformed, or another protocol.
    #[error("no ClientHello: {0}")]
    Malformed(&'static str),
}

impl ClientHelloReader {
    /// Processes the client's next bytes; `None` until the `ClientHello` is complete. The division
    /// of the bytes has no effect on the result.
    ///
    /// # Errors
    /// [`ClientHelloError`], after which no further bytes help.
    pub fn read(&mut self, mut bytes: &[u8]) -> Result<Option<ClientHello>, ClientHelloError> {
        loop {
            if self.left == 0 {
                let missing = RECORD_HEADER_BYTES.saturating_sub(self.header.len());
                let taken = self.take(&mut bytes, missing)?;
                self.header.extend_from_slice(taken);
                let Some(header) = self.header.first_chunk() else {
                    return Ok(None);
                };
                self.left = contents_bytes(*header)?;
                self.header.clear();
            }
            let missing = missing_bytes(&self.message)?.min(self.left);
            let taken = self.take(&mut bytes, missing)?;
            if taken.is_empty() {
                return Ok(None);
            }
            self.left -= taken.len();
            self.message.extend_from_slice(taken);
            if missing_bytes(&self.message)? == 0 {
                return self.finish().map(Some);
            }
        }
    }

    /// Splits up to `count` bytes off `bytes`.
    fn take<'b>(
        &mut self,
        bytes: &mut &'b [u8],
        count: usize,
    ) -> Result<&'b [u8], ClientHelloError> {
        let allowed = MAX_CLIENT_HELLO_BYTES.saturating_sub(self.taken);
        if allowed == 0 && count != 0 {
            return Err(TooLong);
        }
        let (taken, rest) = bytes.split_at(count.min(allowed).min(bytes.len()));
        *bytes = rest;
        self.taken += taken.len();
        Ok(taken)
    }

    fn finish(&self) -> Result<ClientHello, ClientHelloError> {
        if self.left != 0 {
            return Err(Malformed("its record has further contents"));
        }
        let body = self.message.get(MESSAGE_HEADER_BYTES..);
        let server_name = server_name(body.unwrap_or_default())?;
        Ok(ClientHello {
            server_name: server_name.and_then(dns_name),
        })
    }
}

/// Length of the contents of a record. [RFC 8446 §5.1]
fn contents_bytes(header: [u8; RECORD_HEADER_BYTES]) -> Result<usize, ClientHelloError> {
    let [kind, major, _minor, high, low] = header;
    if kind != HANDSHAKE || major != MAJOR_VERSION {
        return Err(Malformed("not a handshake record"));
    }
    match usize::from(u16::from_be_bytes([high, low])) {
        0 => Err(Malformed("an empty record")),
        length if MAX_RECORD_BYTES < length => Err(Malformed("a record that is too long")),
        length => Ok(length),
    }
}

/// Number of bytes that the message lacks, or at first its header.
fn missing_bytes(message: &[u8]) -> Result<usize, ClientHelloError> {
    let Some([kind, high, middle, low]) = message.first_chunk::<MESSAGE_HEADER_BYTES>() else {
        return Ok(MESSAGE_HEADER_BYTES.saturating_sub(message.len()));
    };
    if *kind != CLIENT_HELLO {
        return Err(Malformed("another handshake message"));
    }
    let length = u32::from_be_bytes([0, *high, *middle, *low]);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if MAX_CLIENT_HELLO_BYTES < length {
        return Err(TooLong);
    }
    Ok((MESSAGE_HEADER_BYTES + length).saturating_sub(message.len()))
}

/// The value of `server_name` in the body of a `ClientHello`. [RFC 8446 §4.1.2]
fn server_name(body: &[u8]) -> Result<Option<&[u8]>, ClientHelloError> {
    let mut rest = Bytes(body);
    let [major, _minor] = rest.array()?;
    if major != MAJOR_VERSION {
        return Err(Malformed("an unknown version"));
    }
    rest.array::<RANDOM_BYTES>()?;
    if MAX_SESSION_ID_BYTES < rest.short_list()?.0.len() {
        return Err(Malformed("a session ID that is too long"));
    }
    let suites = rest.list()?.0;
    if suites.is_empty() || !suites.len().is_multiple_of(2) {
        return Err(Malformed("a malformed list of cipher suites"));
    }
    if rest.short_list()?.0.is_empty() {
        return Err(Malformed("no compression method"));
    }
    if rest.0.is_empty() {
        // Extensions are newer than TLS 1.0.
        return Ok(None);
    }
    let mut extensions = rest.list()?;
    rest.end()?;
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = u16::from_be_bytes(extensions.array()?);
        let value = extensions.list()?;
        if kind != SERVER_NAME {
            continue;
        }
        if found.is_some() {
            return Err(Malformed("two extensions `server_name`"));
        }
        found = Some(host_name(value)?);
    }
    Ok(found.flatten())
}

/// The DNS name in an extension `server_name`. Names of other types have a length as well, and are
/// skipped. [RFC 6066 §3]
fn host_name(mut extension: Bytes<'_>) -> Result<Option<&[u8]>, ClientHelloError> {
    let mut names = extension.list()?;
    extension.end()?;
    if names.0.is_empty() {
        return Err(Malformed("an empty list of server names"));
    }
    let mut found = None;
    while !names.0.is_empty() {
        let [kind] = names.array()?;
        let name = names.list()?.0;
        if kind != HOST_NAME {
            continue;
        }
        if name.is_empty() || found.is_some() {
            return Err(Malformed("an empty server name, or two of them"));
        }
        found = Some(name);
    }
    Ok(found)
}

/// `name` in lower case, without a dot at its end; `None` if it is not a DNS name.
fn dns_name(name: &[u8]) -> Option<Box<str>> {
    let name = str::from_utf8(name).ok()?;
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        !label.is_empty() && label.bytes().all(is_allowed)
    };
    let is_name = name.len() <= MAX_NAME_BYTES
        && name.split('.').all(is_label)
        && name.parse::<IpAddr>().is_err();
    is_name.then(|| name.to_ascii_lowercase().into())
}

/// Unread bytes of a structure.
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], ClientHelloError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(CUT_OFF)?;
        self.0 = rest;
        Ok(*array)
    }

    /// Bytes after their length in one byte.
    fn short_list(&mut self) -> Result<Self, ClientHelloError> {
        let [length] = self.array()?;
        self.part(length.into())
    }

    /// Bytes after their length in two bytes.
    fn list(&mut self) -> Result<Self, ClientHelloError> {
        let length = u16::from_be_bytes(self.array()?);
        self.part(length.into())
    }

    fn part(&mut self, length: usize) -> Result<Self, ClientHelloError> {
        let (part, rest) = self.0.split_at_checked(length).ok_or(CUT_OFF)?;
        self.0 = rest;
        Ok(Self(part))
    }

    fn end(&self) -> Result<(), ClientHelloError> {
        let is_end = self.0.is_empty();
        is_end
            .then_some(())
            .ok_or(Malformed("bytes after the last field"))
    }
}

const CUT_OFF: ClientHelloError = Malformed("a field that is cut off");
