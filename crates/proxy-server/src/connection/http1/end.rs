//! The reason why no further request is read from a connection.

use proxy_clock::Timer;
use proxy_framing::FramingError;
use proxy_pipeline::SwitchedConnection;
use std::time::Duration;

#[derive(Debug)]
pub(crate) enum ConnectionEnd {
    /// One side closed the connection, or it failed.
    Closed,
    /// The client has the head of the response to a protocol switch.
    SwitchedConnection(Box<SwitchedConnection>),
    /// The connection ended within a response delimited by its end, which must not look complete.
    Truncated,
    /// The connection hibernates, and may serve a further request.
    Idle,
    Malformed(FramingError),
    TimedOut(Timer, Duration),
}
