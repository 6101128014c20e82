//! Reading of a `ClientHello` without taking part in the handshake.

use rustls::server::{Accepted, Acceptor};
use std::fmt;

/// Maximum number of bytes of a `ClientHello` with its records.
pub const MAX_CLIENT_HELLO_BYTES: usize = 16 * 1024;

/// Reads a `ClientHello` piece by piece, in one record or in several. The caller keeps the bytes, to pass them on.
#[derive(Default)]
pub struct ClientHelloReader {
    acceptor: Acceptor,
    taken: usize,
}

/// A whole `ClientHello`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHello {
    /// The server name, in lower case; `None` if there is none. With an encrypted inner `ClientHello` it is the outer
    /// one's.
    pub server_name: Option<Box<str>>,
}

/// The reason why bytes are not a `ClientHello`.
#[derive(Debug, thiserror::Error)]
pub enum ClientHelloError {
    /// It is longer than [`MAX_CLIENT_HELLO_BYTES`].
    #[error("the ClientHello is longer than {MAX_CLIENT_HELLO_BYTES} bytes")]
    TooLong,
    /// It is malformed, or something else.
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
    /// Reads the next bytes of the client. `None` until the `ClientHello` is whole.
    ///
    /// # Errors
    /// [`ClientHelloError`]: no further bytes make it a `ClientHello`.
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
