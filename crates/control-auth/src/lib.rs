//! Proof of identity, given bytes and a time.

mod audit_key;
mod certificate;
mod error;
mod password;
mod password_rules;
mod recovery_code;
mod seal;
mod secret;
mod signature;
mod token;
mod totp;
mod webhook_key;

pub use audit_key::AuditKey;
pub use certificate::{CertificateError, CheckedCertificate};
pub use error::AuthError;
pub use password::{Password, PasswordHash, PasswordMemory};
pub use password_rules::PasswordFault;
pub use recovery_code::RecoveryCode;
pub use seal::{MasterKey, SealError, Sealed, Sealer};
pub use secret::{Secret, sha256, sha256_hex};
pub use signature::{PublicKey, SigningPair};
pub use token::{Claims, TOKEN_LIFETIME, UnverifiedToken};
pub use totp::{TOTP_SECRET_BYTES, TotpSecret};
pub use webhook_key::WebhookKey;
