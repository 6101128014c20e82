//! Errors of a refused order, and of a client that cannot start.

use control_wire::SigningKeyId;
use std::io;
use std::path::PathBuf;

/// Error of an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// The order's node ID differs.
    #[error("the order is for another node")]
    OtherNode,
    /// An order with this counter or a later one was carried out already.
    #[error("the order has counter {found}, and the node has seen {seen}")]
    Old {
        /// The order's counter.
        found: u64,
        /// The newest counter of this node.
        seen: u64,
    },
    /// Two orders have one counter and different bundles.
    #[error("two orders have the counter {0}")]
    Conflict(u64),
    /// The key is neither pinned nor endorsed by a pinned one.
    #[error("the order is signed by the key {0}, which this node does not trust")]
    UnknownKey(SigningKeyId),
    /// The signature is of another text, or by another key.
    #[error("the signature of the order does not match")]
    Signature,
}

/// Error of the start of the client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The folder for identity and bundles cannot be used.
    #[error("cannot use {}: {source}", folder.display())]
    Storage {
        /// Data folder of the node.
        folder: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The roots for the control plane's certificate cannot be read.
    #[error("cannot read the roots for the control plane: {0}")]
    Roots(String),
    /// No HTTP client can be made.
    #[error("cannot make an HTTP client: {0}")]
    Http(#[from] reqwest::Error),
    /// The thread or its runtime cannot be started.
    #[error("cannot start the thread of the control plane's client: {0}")]
    Thread(#[source] io::Error),
}
