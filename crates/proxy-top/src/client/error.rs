//! Failures of `proxyd top` and `proxyd health`.

use std::io;

/// The reason why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum TopError {
    /// The token has characters that no header field takes, or none.
    #[error("the token is empty, or has other characters than visible ASCII")]
    Token,
    /// There is no connection, or it ended.
    #[error("no answer from {address}: {source}")]
    Connection {
        /// Address of the admin interface.
        address: String,
        /// The error of the socket.
        source: io::Error,
    },
    /// There was no whole response in time.
    #[error("no answer from {0} in time")]
    Timeout(String),
    /// The interface requires a token, or another one.
    #[error(
        "{0} requires a token: name its file by `--token-file`, or the configuration by `--config`"
    )]
    Unauthorized(String),
    /// The proxy does not take traffic: it starts, drains, or its last configuration failed.
    #[error("{address} is not ready: {body}")]
    NotReady {
        /// The admin interface.
        address: String,
        /// The response, with the reasons.
        body: String,
    },
    /// Another status than 200.
    #[error("{path} of {address} is answered {status}: is it the admin interface of proxyd?")]
    Status {
        /// The admin interface.
        address: String,
        /// Path of the request.
        path: &'static str,
        /// Status of the response.
        status: u16,
    },
    /// The response is none of the admin interface's.
    #[error("{path} of {address} is not of proxyd: {fault}")]
    Response {
        /// The admin interface.
        address: String,
        /// Path of the request.
        path: &'static str,
        /// Fault of the document.
        fault: String,
    },
    /// The terminal cannot be used, or the runtime of the client.
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[from] io::Error),
}
