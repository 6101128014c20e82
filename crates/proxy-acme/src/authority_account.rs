//! Orders for callers that store account, challenges and keys themselves, such as a control plane.
//!
//! [`maintain_certificate`](crate::maintain_certificate) stores them in files of one machine. Here
//! each step is a separate call, so that the caller can store its result, and another process can
//! continue after a crash.

use crate::account::{blocking, builder_with, create_for};
use crate::authority::{AuthorityAccess, RetryAfter};
use crate::certificate::StoredCertificate;
use crate::error::AcmeError;
use crate::order::{finish, is_pending, place, refusal, wait_until_ready};
use crate::renewal::{Window, earliest_order, renewal_time};
use crate::renewal_task::{MAX_WINDOW_INTERVAL, MIN_WINDOW_INTERVAL, unix_time};
use crate::request::{SigningRequest, signing_request, signing_request_again};
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, ChallengeStatus, ChallengeType, Identifier,
    Order, OrderStatus,
};
use proxy_model::AcmeKeyType;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use zeroize::Zeroizing;

/// An account at an authority.
pub struct AuthorityAccount {
    account: Account,
    retry_after: RetryAfter,
}

/// An order at an authority.
pub struct PlacedOrder {
    order: Order,
}

/// A pending HTTP-01 challenge. [RFC 8555 §8.3]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpChallenge {
    /// Host to validate.
    pub host: String,
    /// Last path segment of the authority's request.
    pub token: String,
    /// Response body that the authority expects.
    pub key_authorization: String,
}

/// Key of a certificate, with its signing request.
pub struct CertificateKey(SigningRequest);

/// Properties of an issued certificate that its renewal depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct IssuedCertificate(StoredCertificate);

impl AuthorityAccount {
    /// Opens an account with the credentials that [`AuthorityAccount::create`] returned.
    ///
    /// # Errors
    /// The credentials are damaged, or the authority is unavailable.
    pub async fn open(access: AuthorityAccess, credentials: &[u8]) -> Result<Self, AcmeError> {
        let bad = || AcmeError::BadAccount {
            path: PathBuf::from("account"),
        };
        let credentials: AccountCredentials =
            serde_json::from_slice(credentials).map_err(|_| bad())?;
        let retry_after = RetryAfter::default();
        let builder = builder_with(access, &retry_after).await?;
        match builder.from_credentials(credentials).await {
            Ok(account) => Ok(Self {
                account,
                retry_after,
            }),
            Err(instant_acme::Error::KeyRejected) => Err(bad()),
            Err(error) => Err(asking(error.into(), &retry_after)),
        }
    }

    /// Creates an account with this e-mail address, after agreement to the authority's terms.
    /// Returns its credentials, which contain a private key.
    ///
    /// # Errors
    /// The authority refuses, or is unavailable.
    pub async fn create(
        access: AuthorityAccess,
        email: &str,
    ) -> Result<(Self, Zeroizing<Vec<u8>>), AcmeError> {
        let retry_after = RetryAfter::default();
        let directory = access.directory.clone();
        let builder = builder_with(access, &retry_after).await?;
        let created = create_for(builder, email, directory, None).await;
        let (account, credentials) = created.map_err(|error| asking(error, &retry_after))?;
        let credentials = serde_json::to_vec(&credentials).map(Zeroizing::new);
        let credentials = credentials.map_err(|error| AcmeError::Key(error.to_string()))?;
        let own = Self {
            account,
            retry_after,
        };
        Ok((own, credentials))
    }

    /// Places an order. It replaces the certificate `replaced` if the authority supports that.
    ///
    /// # Errors
    /// The authority refuses, or is unavailable.
    pub async fn place(
        &self,
        hosts: &[String],
        replaced: Option<&IssuedCertificate>,
    ) -> Result<PlacedOrder, AcmeError> {
        let hosts: Vec<Identifier> = hosts.iter().cloned().map(Identifier::Dns).collect();
        let replaced = replaced.and_then(|issued| issued.0.renewal_id());
        let placed = place(&self.account, &hosts, replaced).await;
        let order = placed.map_err(|error| self.asking(error))?;
        Ok(PlacedOrder { order })
    }

    /// Resumes an order that was placed before, perhaps by another process.
    ///
    /// # Errors
    /// The authority no longer knows the order, or is unavailable.
    pub async fn resume(&self, url: &str) -> Result<PlacedOrder, AcmeError> {
        let order = self.account.order(url.to_owned()).await;
        let order = order.map_err(|error| self.asking(error.into()))?;
        Ok(PlacedOrder { order })
    }

    /// The authority's renewal window (ARI) for a certificate, and the time until the next request
    /// for it; `None` if the authority has no renewal windows.
    ///
    /// # Errors
    /// The authority refuses, or is unavailable.
    pub async fn renewal_window(
        &self,
        issued: &IssuedCertificate,
    ) -> Result<Option<(Window, Duration)>, AcmeError> {
        let Some(id) = issued.0.renewal_id() else {
            return Ok(None);
        };
        match self.account.renewal_info(&id).await {
            Ok((info, again)) => {
                let window = info.suggested_window;
                let window = Window {
                    start: unix_time(window.start.unix_timestamp()),
                    end: unix_time(window.end.unix_timestamp()),
                };
                let again = again.clamp(MIN_WINDOW_INTERVAL, MAX_WINDOW_INTERVAL);
                Ok(Some((window, again)))
            }
            Err(instant_acme::Error::Unsupported(_)) => Ok(None),
            Err(error) => Err(self.asking(error.into())),
        }
    }

    /// Adds the delay requested by the authority's last response to the error.
    pub fn asking(&self, error: AcmeError) -> AcmeError {
        asking(error, &self.retry_after)
    }
}

impl PlacedOrder {
    /// URL of the order, for [`AuthorityAccount::resume`].
    pub fn url(&self) -> &str {
        self.order.url()
    }

    /// Challenges that are not validated yet.
    ///
    /// # Errors
    /// The authority has refused a host already, or is unavailable.
    pub async fn challenges(&mut self) -> Result<Vec<HttpChallenge>, AcmeError> {
        let mut pending = Vec::new();
        let mut authorizations = self.order.authorizations();
        while let Some(next) = authorizations.next().await {
            let mut authorization = next?;
            let host = authorization.identifier().to_string();
            if !is_pending(&authorization, &host)? {
                continue;
            }
            let Some(challenge) = authorization.challenge(ChallengeType::Http01) else {
                let challenge = "http-01";
                return Err(AcmeError::NotOffered { host, challenge });
            };
            let key_authorization = challenge.key_authorization().as_str().to_owned();
            let token = challenge.token.clone();
            pending.push(HttpChallenge {
                host,
                token,
                key_authorization,
            });
        }
        Ok(pending)
    }

    /// Tells the authority that all challenges are answered, and waits until it has validated every
    /// host.
    ///
    /// # Errors
    /// The authority refuses a host, or is unavailable.
    pub async fn validate(&mut self) -> Result<(), AcmeError> {
        let mut authorizations = self.order.authorizations();
        while let Some(next) = authorizations.next().await {
            let mut authorization = next?;
            if authorization.status != AuthorizationStatus::Pending {
                continue;
            }
            let challenge = authorization.challenge(ChallengeType::Http01);
            // Another process may have told the authority already.
            let untold = challenge.filter(|own| own.status == ChallengeStatus::Pending);
            if let Some(mut challenge) = untold {
                challenge.set_ready().await?;
            }
        }
        wait_until_ready(&mut self.order).await
    }

    /// Returns true if every host is validated.
    pub fn is_validated(&mut self) -> bool {
        match self.order.state().status {
            OrderStatus::Ready | OrderStatus::Processing | OrderStatus::Valid => true,
            OrderStatus::Pending | OrderStatus::Invalid => false,
        }
    }

    /// Returns true if the signing request was sent: the certificate is for the key in it.
    pub fn is_requested(&mut self) -> bool {
        match self.order.state().status {
            OrderStatus::Processing | OrderStatus::Valid => true,
            OrderStatus::Pending | OrderStatus::Ready | OrderStatus::Invalid => false,
        }
    }

    /// Reason why the order has failed; `None` if it has not.
    pub async fn failure(&mut self) -> Option<AcmeError> {
        match self.order.state().status {
            OrderStatus::Invalid => Some(refusal(&mut self.order, None).await),
            OrderStatus::Pending
            | OrderStatus::Ready
            | OrderStatus::Processing
            | OrderStatus::Valid => None,
        }
    }

    /// Sends the signing request, unless that was done before. Returns the chain in PEM, after
    /// checking that it is for `key` and `hosts`.
    ///
    /// # Errors
    /// The authority refuses, or returns another certificate.
    pub async fn finish(
        &mut self,
        key: &CertificateKey,
        hosts: &[String],
        key_type: AcmeKeyType,
        now: SystemTime,
    ) -> Result<String, AcmeError> {
        finish(&mut self.order, &key.0, hosts, key_type, now).await
    }
}

impl CertificateKey {
    /// Generates a key for these hosts.
    ///
    /// # Errors
    /// A key of this type cannot be generated.
    pub async fn generate(hosts: &[String], key_type: AcmeKeyType) -> Result<Self, AcmeError> {
        let hosts = hosts.to_vec();
        let made = blocking(move || signing_request(&hosts, key_type)).await;
        made.map(Self)
    }

    /// Restores a stored key.
    ///
    /// # Errors
    /// The text is not a private key.
    pub fn stored(hosts: &[String], key_pem: &str) -> Result<Self, AcmeError> {
        signing_request_again(hosts, key_pem).map(Self)
    }

    /// Private key, PKCS#8 in PEM.
    pub fn pem(&self) -> &Zeroizing<String> {
        &self.0.key_pem
    }
}

impl IssuedCertificate {
    /// Parses the leaf of a chain in PEM.
    ///
    /// # Errors
    /// The text is not a certificate.
    pub fn parse(chain_pem: &str) -> Result<Self, AcmeError> {
        StoredCertificate::parse(chain_pem.as_bytes()).map(Self)
    }

    /// Time of the renewal: in the authority's window, or else after about two thirds of the
    /// lifetime.
    pub fn renew_at(&self, window: Option<Window>) -> SystemTime {
        renewal_time(self.0.validity, window, self.0.spread)
    }

    /// Earliest time of the next order after this certificate was obtained at `now`. Limits the
    /// number of orders if the clock is ahead.
    pub fn earliest_order(&self, now: SystemTime) -> SystemTime {
        earliest_order(self.0.validity, now)
    }
}

/// Adds the delay of the last response to an error. Responses without an explanation may have one
/// as well.
fn asking(error: AcmeError, retry_after: &RetryAfter) -> AcmeError {
    let asked = retry_after.take();
    match (error, asked) {
        (AcmeError::Refused(mut refusal), Some(asked)) => {
            refusal.retry_after = Some(asked);
            AcmeError::Refused(refusal)
        }
        (AcmeError::Unreachable(why), Some(retry_after)) => AcmeError::Busy { why, retry_after },
        (error, _) => error,
    }
}

impl fmt::Debug for AuthorityAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuthorityAccount({})", self.account.id())
    }
}

impl fmt::Debug for PlacedOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlacedOrder({})", self.url())
    }
}

impl fmt::Debug for CertificateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CertificateKey(…)")
    }
}
