//! Errors of issuance, with advice for the operator.

use crate::settings::AcmeSettings;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Prefix of ACME problem types. [RFC 8555 §6.7]
const TYPE_PREFIX: &str = "urn:ietf:params:acme:error:";
/// Maximum length of the authority's text in messages.
const MAX_TEXT_CHARS: usize = 500;

/// Reason why no certificate was obtained.
#[derive(Debug, thiserror::Error)]
pub enum AcmeError {
    /// A file or folder cannot be used.
    #[error("`{}`: {error}", path.display())]
    Storage {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the file operation.
        error: io::Error,
    },
    /// The stored account is damaged.
    #[error("`{}` is not an ACME account", path.display())]
    BadAccount {
        /// Path of the account.
        path: PathBuf,
    },
    /// The key of the external account cannot be used.
    #[error("`{}` {why}", path.display())]
    BadExternalKey {
        /// Path of the key.
        path: PathBuf,
        /// Fault of the key.
        why: String,
    },
    /// The root certificates for the authority's server cannot be used.
    #[error("the roots for the authority's server: {0}")]
    BadRoots(String),
    /// The authority cannot be reached, or does not respond by ACME.
    #[error("the authority does not answer: {0}")]
    Unreachable(String),
    /// The authority responded with an error without explanation, but with `Retry-After`.
    #[error("the authority does not answer: {why}")]
    Busy {
        /// Response of the authority.
        why: String,
        /// Time after which the authority accepts another attempt.
        retry_after: Duration,
    },
    /// The authority did not decide in time.
    #[error("the authority did not decide in time")]
    TimedOut,
    /// The authority refused the request with a problem document.
    #[error("{0}")]
    Refused(Refusal),
    /// The authority does not offer the configured challenge for a host.
    #[error("the authority does not offer `{challenge}` for {host}")]
    NotOffered {
        /// Host without a usable challenge.
        host: String,
        /// The configured challenge.
        challenge: &'static str,
    },
    /// The program for DNS-01 failed.
    #[error("the `dns-command` for {name} {why}")]
    DnsCommand {
        /// Name of the record.
        name: String,
        /// How it failed.
        why: String,
    },
    /// A key or signing request cannot be created.
    #[error("cannot make a key: {0}")]
    Key(String),
    /// The issued certificate cannot be used.
    #[error("the authority's certificate {0}")]
    BadCertificate(String),
}

/// Refusal by the authority.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The refused host; `None` for the order or the account as a whole.
    pub host: Option<String>,
    /// Problem type without ACME's prefix. [RFC 8555 §6.7]
    pub kind: String,
    /// Explanation by the authority.
    pub detail: String,
    /// Time after which the authority accepts another attempt; `None` if it does not say.
    pub retry_after: Option<Duration>,
}

impl AcmeError {
    /// Stable name: the authority's problem type, or one of this crate's.
    pub fn kind(&self) -> &str {
        match self {
            Self::Storage { .. } => "storage",
            Self::BadAccount { .. } => "bad_account",
            Self::BadExternalKey { .. } => "bad_external_key",
            Self::BadRoots(_) => "bad_roots",
            Self::Unreachable(_) | Self::Busy { .. } => "unreachable",
            Self::TimedOut => "timed_out",
            Self::Refused(refusal) => &refusal.kind,
            Self::NotOffered { .. } => "not_offered",
            Self::DnsCommand { .. } => "dns_command",
            Self::Key(_) => "key",
            Self::BadCertificate(_) => "bad_certificate",
        }
    }

    /// Advice for the operator.
    pub fn advice(&self, settings: &AcmeSettings) -> String {
        let fixed = match self {
            Self::Storage { .. } => "let the process write to `storage`",
            Self::BadAccount { path } => {
                let path = path.display();
                return format!("restore `{path}`, or remove it so that a new account is made");
            }
            Self::BadExternalKey { .. } => "write the key as the authority gave it, in base64url",
            Self::BadRoots(_) => "check `directory-ca-file`",
            Self::Unreachable(_) | Self::Busy { .. } => {
                "check `directory`, and that this machine reaches it"
            }
            Self::TimedOut => "wait: it is tried again",
            Self::Refused(refusal) => return refusal.advice(settings),
            Self::NotOffered { .. } => "choose another `challenge`; wildcards need `dns-01`",
            Self::DnsCommand { .. } => "run the program by hand with the same arguments",
            Self::Key(_) => "choose another `key-type`",
            Self::BadCertificate(_) => "ask the authority; the certificate in use stays",
        };
        fixed.to_owned()
    }

    /// Returns true if the authority may have done what was asked for, or may do so later.
    pub(crate) fn is_inconclusive(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Busy { .. } | Self::TimedOut => true,
            Self::Refused(refusal) => {
                matches!(&*refusal.kind, "rateLimited" | "serverInternal")
            }
            Self::Storage { .. }
            | Self::BadAccount { .. }
            | Self::BadExternalKey { .. }
            | Self::BadRoots(_)
            | Self::NotOffered { .. }
            | Self::DnsCommand { .. }
            | Self::Key(_)
            | Self::BadCertificate(_) => false,
        }
    }

    /// Time after which the authority accepts another attempt; `None` if it does not say.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after,
            Self::Busy { retry_after, .. } => Some(*retry_after),
            Self::Storage { .. }
            | Self::BadAccount { .. }
            | Self::BadExternalKey { .. }
            | Self::BadRoots(_)
            | Self::Unreachable(_)
            | Self::TimedOut
            | Self::NotOffered { .. }
            | Self::DnsCommand { .. }
            | Self::Key(_)
            | Self::BadCertificate(_) => None,
        }
    }
}

impl Refusal {
    /// Creates a refusal from the authority's problem document.
    pub(crate) fn new(host: Option<String>, problem: &instant_acme::Problem) -> Self {
        let kind = problem.r#type.as_deref().unwrap_or("about:blank");
        let detail = problem.detail.as_deref().unwrap_or_default();
        let mut detail = readable(detail);
        for part in &problem.subproblems {
            detail.push_str("; ");
            detail.push_str(&readable(&part.to_string()));
        }
        Self {
            host,
            kind: readable(kind.strip_prefix(TYPE_PREFIX).unwrap_or(kind)),
            detail,
            retry_after: None,
        }
    }

    fn advice(&self, settings: &AcmeSettings) -> String {
        let host = self.host.as_deref();
        let host = host.unwrap_or("the host");
        let challenge = settings.challenge.name();
        match &*self.kind {
            "dns" => format!("publish the records of {host} in DNS; `{challenge}` needs them"),
            "connection" | "tls" => format!(
                "let the authority reach {host} for `{challenge}`: address records, firewall, port {}",
                if challenge == "http-01" { 80 } else { 443 }
            ),
            "unauthorized" if self.host.is_some() => {
                format!("another server answers for {host}: check its address records")
            }
            "unauthorized" | "malformed" | "accountDoesNotExist" => {
                "the authority does not know the stored account or its key: restore `account.json`, or \
                 remove it so that a new account is made"
                    .to_owned()
            }
            "incorrectResponse" => {
                format!("another server or an old record answers for {host}")
            }
            "caa" => format!("let a CAA record of {host} name this authority"),
            "rateLimited" => {
                "wait; use the authority's staging directory for trials".to_owned()
            }
            "rejectedIdentifier" | "unsupportedIdentifier" => {
                format!("the authority issues nothing for {host}: remove it from `hosts`")
            }
            "externalAccountRequired" => "write `eab` with the authority's key".to_owned(),
            "userActionRequired" => "agree to the authority's new terms on its site".to_owned(),
            "invalidContact" | "unsupportedContact" => "correct `email`".to_owned(),
            "badCSR" | "badPublicKey" | "badSignatureAlgorithm" => {
                "choose another `key-type`".to_owned()
            }
            _ => "read the authority's explanation; it is tried again".to_owned(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            host,
            kind,
            detail,
            retry_after: _,
        } = self;
        match host {
            Some(host) => write!(f, "the authority refuses {host}: {kind}: {detail}"),
            None => write!(f, "the authority refuses: {kind}: {detail}"),
        }
    }
}

/// Text of the authority, on one line and of limited length.
pub(crate) fn readable(text: &str) -> String {
    let text = text.chars().take(MAX_TEXT_CHARS);
    text.map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl From<instant_acme::Error> for AcmeError {
    fn from(error: instant_acme::Error) -> Self {
        if let instant_acme::Error::Api(problem) = &error {
            Self::Refused(Refusal::new(None, problem))
        } else if let instant_acme::Error::Timeout(_) = &error {
            Self::TimedOut
        } else {
            Self::Unreachable(readable(&causes(&error)))
        }
    }
}

fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
