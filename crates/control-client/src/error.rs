//! Errors: refused orders, and clients that cannot start.

use control_wire::SigningKeyId;
use std::io;
use std::path::PathBuf;

/// Reason to refuse an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// The order is for another node.
    #[error("the order is for another node")]
    OtherNode,
    /// The order is older than, or as old as, one that the node has answered.
    #[error("the order has counter {found}, and the node has seen {seen}")]
    Old {
        /// Counter of the order.
        found: u64,
        /// Newest counter that the node has seen.
        seen: u64,
    },
    /// Two orders have the same counter and different bundles.
    #[error("two orders have the counter {0}")]
    Conflict(u64),
    /// The key is neither pinned nor endorsed by a pinned one.
    #[error("the order is signed by the key {0}, which this node does not trust")]
    UnknownKey(SigningKeyId),
    /// The signature does not verify.
    #[error("the signature of the order does not match")]
    Signature,
}

/// Reason why the client cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The data folder cannot be used.
    #[error("cannot use {}: {source}", folder.display())]
    Storage {
        /// The node's data folder.
        folder: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The root certificates for the control plane cannot be read.
    #[error("cannot read the roots for the control plane: {0}")]
    Roots(String),
    /// The HTTP client cannot be created.
    #[error("cannot make an HTTP client: {0}")]
    Http(#[from] reqwest::Error),
    /// The client's thread or its runtime cannot be started.
    #[error("cannot start the thread of the control plane's client: {0}")]
    Thread(#[source] io::Error),
}
