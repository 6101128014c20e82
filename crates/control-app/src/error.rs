//! Why a command was not carried out.

use control_auth::{AuthError, SealError};
use control_domain::Refusal;
use control_store::StoreError;

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The identity of the actor could not be established.
    #[error("no valid credential")]
    Unauthenticated,
    /// The domain refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The caller had read another version (`If-Match`).
    #[error("the value has another version")]
    Precondition,
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A key or a password could not be used.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// A secret could not be sealed or opened.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// As many long polls wait as this replica holds.
    #[error("too many requests wait")]
    TooManyWaiters,
    /// A task was cancelled because the program stops.
    #[error("the program stops")]
    Stopped,
}
