//! A connection to a target kept for the next request, one pool per worker.
//!
//! Nothing here is `Send`: a pool belongs to one thread. A connection is not a task of its own; it is
//! driven by whoever waits for its response ([`Connection::send`]) or reads its body
//! ([`ResponseBody`]), so that a slow client slows its own upstream and nothing else, and no wake-up
//! crosses tasks.

mod body;
mod connect;
mod connection;
mod fault;
mod http2;
mod incoming;
mod limit;
mod pool;
mod race;
mod secure;
mod stream_pair;
mod transport;
mod waiting;

pub use body::ResponseBody;
pub use connect::ConnectSettings;
pub use connection::{Connection, Tunnel};
pub use fault::{ConnectFault, SendFault};
pub use http2::{Building, Call, CallFault, Dug, Lane, Trunks, Unsent, Waiting, Way, call_tunnel};
pub use limit::{ConnectionLimit, ConnectionPermit};
pub use pool::{Pool, PoolSettings};
pub use race::connect;
pub use secure::Secure;
pub use stream_pair::StreamPair;
pub use transport::Transport;
pub use waiting::{Place, PlaceWait};
