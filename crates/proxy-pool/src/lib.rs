//! Pools of connections to targets, one per worker.
//!
//! No type here is `Send`: a pool belongs to one thread. A connection has no separate task; it is
//! driven by the task that waits for its response ([`Connection::send`]) or reads its body
//! ([`ResponseBody`]), so that a slow client delays only its own upstream connection, and no
//! wake-up crosses tasks.

mod body;
mod connect;
mod connection;
mod error;
mod http2;
mod idle_limit;
mod limit;
mod pool;
mod pool_settings;
mod race;
mod response_reader;
mod transport;
mod unsent_frames;
mod waiting;

pub use body::ResponseBody;
pub use connect::{ConnectSettings, connect_once};
pub use connection::{Connection, ConnectionOwner};
pub use error::{ConnectError, Http2RequestError, SendError};
pub use http2::{
    Checkout, Connecting, ExtendedConnectResponse, Http2Pool, Http2Request, OpenConnections,
    RejectedRequest, StreamSlot, Tunnel, Waiting, extended_connect,
};
pub use idle_limit::IdleLimit;
pub use limit::{ConnectionLimit, ConnectionPermit};
pub use pool::Pool;
pub use pool_settings::PoolSettings;
pub use race::{Candidate, Dialed, connect};
pub use response_reader::ExpectedResponse;
pub use transport::{StreamPair, UpstreamStream, UpstreamTlsStream};
pub use unsent_frames::UnsentFrames;
pub use waiting::{ConnectionWait, Place};
