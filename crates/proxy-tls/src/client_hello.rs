//! Parsing of a `ClientHello`, for relays that do not terminate TLS.

use rustls::server::{Accepted, Acceptor};
use std::fmt;

/// Maximum size of a `ClientHello`, including its records.
pub const MAX_CLIENT_HELLO_BYTES: usize = 16 * 1024;

/// Incremental parser for a `ClientHello` in one or several records. The caller keeps the bytes, to
/// forward them.
#[derive(Default)]
pub struct ClientHelloReader {
    acceptor: Acceptor,
    taken: usize,
}

/// Contents of a complete `ClientHello`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHello {
    /// Server name in lower case; `None` without SNI. With Encrypted Client Hello, it is the outer
    /// name.
    pub server_name: Option<Box<str>>,
}

/// Reason why the bytes are not a `ClientHello`.
#[derive(Debug, thiserror::Error)]
pub enum ClientHelloError {
    /// The `ClientHello` exceeds [`MAX_CLIENT_HELLO_BYTES`].
    #[error("the ClientHello is longer than {MAX_CLIENT_HELLO_BYTES} bytes")]
    TooLong,
    /// The bytes are malformed, or another protocol.
    #[error("no ClientHello: {0}")]
    Malformed(String),
}

impl fmt::Debug for ClientHelloReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acceptor: _, taken } = self;
        f.debug_struct("ClientHelloReader")
            .field("taken", taken)
            .finish_non_exhaustive()
    }
}

impl ClientHelloReader {
    /// Processes the client's next bytes; `None` until the `ClientHello` is complete.
    ///
    /// # Errors
    /// [`ClientHelloError`], after which no further bytes help.
    pub fn read(&mut self, mut bytes: &[u8]) -> Result<Option<ClientHello>, ClientHelloError> {
        loop {
            let malformed =
                |error: &dyn fmt::Display| ClientHelloError::Malformed(error.to_string());
            let left = bytes.len();
            let count = if left == 0 {
                0
            } else {
                let read = self.acceptor.read_tls(&mut bytes);
                read.map_err(|error| malformed(&error))?
            };
            self.taken += count;
            let accepted = self.acceptor.accept();
            match accepted.map_err(|(error, _)| malformed(&error))? {
                Some(accepted) => return Ok(Some(ClientHello::new(&accepted))),
                None if self.taken >= MAX_CLIENT_HELLO_BYTES => {
                    return Err(ClientHelloError::TooLong);
                }
                None if count == 0 => return Ok(None),
                None => {}
            }
        }
    }
}

impl ClientHello {
    fn new(accepted: &Accepted) -> Self {
        let hello = accepted.client_hello();
        Self {
            server_name: hello
                .server_name()
                .map(|name| name.to_ascii_lowercase().into()),
        }
    }
}
