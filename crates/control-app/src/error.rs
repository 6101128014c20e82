//! Errors of commands.

use control_auth::{AuthError, CertificateError, SealError};
use control_bundle::BundleError;
use control_domain::Refusal;
use control_store::{ObjectError, StoreError};

/// Error of a command; the API maps each variant to a problem response.
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
    /// The current version is not among those in `If-Match`.
    #[error("the value has another version")]
    Precondition,
    /// The database failed, or refused the write.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A signing key or a password hash could not be used.
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
    /// The object store failed.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// This replica's limit of long polls is reached.
    #[error("too many requests wait")]
    TooManyWaiters,
    /// The budget for bundle uploads has no room in time.
    #[error("too many bundles are uploaded at once")]
    TooManyUploads,
    /// The budget for large bodies has no room in time.
    #[error("too many large bodies are sent at once")]
    TooManyBodies,
    /// A node or its organization exceeds its budget for report bytes.
    #[error("bytes of reports of the {owner}")]
    TooManyReportBytes {
        /// `node` or `organization`.
        owner: &'static str,
        /// Seconds until the next report.
        retry_after_secs: u64,
    },
    /// A sign-in through an identity provider broke a rule. Only the log and the connection's
    /// administrators see which.
    #[error("sign-in was refused")]
    SsoRefused,
    /// The provider did not authenticate the user again, so its response is no fresh proof of
    /// identity.
    #[error("the identity provider did not ask for the user's identity again")]
    SsoNotAuthenticated,
    /// The provider confirmed a new user with the address of an existing one.
    #[error("a user with this address exists")]
    SsoEmailTaken,
    /// An unsolicited response of a provider would replace the session of another user.
    #[error("the browser is signed in as another user")]
    SsoOtherSession,
    /// A task was cancelled because the program stops.
    #[error("the program stops")]
    Stopped,
}
