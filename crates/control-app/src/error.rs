//! Error of a command.

use control_auth::{AuthError, CertificateError, SealError};
use control_bundle::BundleError;
use control_domain::Refusal;
use control_store::{ObjectError, StoreError};

/// Error of a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The identity of the actor could not be established.
    #[error("no valid credential")]
    Unauthenticated,
    /// The address, the password or the code is wrong; the response does not reveal which.
    #[error("wrong address, password or code")]
    WrongSignIn,
    /// Too many wrong passwords or codes for this account.
    #[error("too many tries")]
    TooManyAttempts {
        /// Seconds until the next try.
        retry_after_secs: u64,
    },
    /// This replica's maximum of concurrent password comparisons is reached.
    #[error("too many sign-ins at once")]
    TooManySignIns,
    /// A rule of the domain refuses the command.
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
    /// The files of a request cannot be a bundle.
    #[error("files: {0}")]
    Files(BundleError),
    /// A service or an upstream has a field that no proxy reads.
    #[error("{field}: {reason}")]
    Definition {
        /// The field's name, with dots between levels.
        field: &'static str,
        /// Message of the configuration check.
        reason: String,
    },
    /// A stored archive differs from the recorded digest.
    #[error("stored archive: {0}")]
    Archive(BundleError),
    /// A certificate or its key cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The object store did not do it.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// This replica's maximum of long polls is reached.
    #[error("too many requests wait")]
    TooManyWaiters,
    /// This replica's maximum of concurrent bundle uploads is reached.
    #[error("too many bundles are uploaded at once")]
    TooManyUploads,
    /// This replica's maximum of concurrent large bodies is reached for one organization.
    #[error("too many large bodies are sent at once")]
    TooManyBodies,
    /// A node or its organization sends more bytes of reports than its budget has.
    #[error("bytes of reports of the {owner}")]
    TooManyReportBytes {
        /// `node` or `organization`.
        owner: &'static str,
        /// Seconds until the next report.
        retry_after_secs: u64,
    },
    /// A sign-in through an identity provider broke a rule; the log and the connection's administrators have it.
    #[error("sign-in was refused")]
    SsoRefused,
    /// The provider did not authenticate the user again, so that its answer proves nothing.
    #[error("the identity provider did not ask for the user's identity again")]
    SsoNotAuthenticated,
    /// The provider confirmed a new user, and another user has its address.
    #[error("a user with this address exists")]
    SsoEmailTaken,
    /// A task was cancelled because the program stops.
    #[error("the program stops")]
    Stopped,
}
