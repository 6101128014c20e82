//! An order: from the authority's challenges to the issued certificate.

use crate::account::blocking;
use crate::certificate::StoredCertificate;
use crate::dns_command::{self, RecordChange};
use crate::error::{AcmeError, Refusal};
use crate::request::{SigningRequest, challenge_certificate, signing_request};
use crate::responder::Responder;
use crate::settings::{AcmeSettings, Challenge, DnsCommand};
use instant_acme::{
    Account, AuthorizationHandle, AuthorizationStatus, CertificateIdentifier, ChallengeType,
    Identifier, KeyAuthorization, NewOrder, Order, OrderStatus, RetryPolicy,
};
use proxy_model::AcmeKeyType;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use zeroize::Zeroizing;

/// Polling policy; the authority validates from several vantage points, which takes a while.
const POLLS: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(250))
    .backoff(1.5)
    .timeout(Duration::from_mins(3));

/// Published responses to an order's challenges; all are withdrawn on drop.
struct Answers {
    responder: Arc<dyn Responder>,
    published: Vec<PublishedChallenge>,
}

/// A published response to a challenge.
enum PublishedChallenge {
    Token(String),
    Certificate(String),
    Record {
        command: DnsCommand,
        name: String,
        value: String,
    },
}

/// An order after its signing request was sent. The authority may have issued its certificate:
/// another order would count against its limits.
pub(crate) struct RequestedOrder {
    url: String,
    settings: AcmeSettings,
    request: SigningRequest,
}

impl RequestedOrder {
    fn is_for(&self, settings: &AcmeSettings) -> bool {
        let own = &self.settings;
        own.directory == settings.directory
            && own.hosts == settings.hosts
            && own.key_type == settings.key_type
    }
}

/// Obtains a certificate with a new key, replacing `replaced` if the authority supports that.
/// Returns key and chain in PEM. `requested` is an order to finish before a new one is placed;
/// afterwards it is the order with an unknown result, if there is one.
pub(crate) async fn obtain(
    settings: &AcmeSettings,
    account: &Account,
    responder: &Arc<dyn Responder>,
    replaced: Option<CertificateIdentifier<'_>>,
    now: fn() -> SystemTime,
    requested: &mut Option<RequestedOrder>,
) -> Result<Zeroizing<Vec<u8>>, AcmeError> {
    let (mut order, request) = match resume(settings, account, requested).await? {
        Some(resumed) => resumed,
        None => prepare(settings, account, responder, replaced).await?,
    };
    let (hosts, key_type) = (&settings.hosts, settings.key_type);
    let finished = finish(&mut order, &request, hosts, key_type, now()).await;
    let chain = match finished {
        Ok(chain) => chain,
        Err(error) => {
            if error.is_inconclusive() {
                *requested = Some(RequestedOrder {
                    url: order.url().to_owned(),
                    settings: settings.clone(),
                    request,
                });
            }
            return Err(error);
        }
    };
    let key_pem = request.key_pem;
    let mut pem = Zeroizing::new(Vec::with_capacity(key_pem.len() + chain.len() + 1));
    pem.extend_from_slice(key_pem.as_bytes());
    pem.extend_from_slice(chain.as_bytes());
    Ok(pem)
}

/// The order of an earlier attempt with its signing request; `None` if it cannot be finished.
async fn resume(
    settings: &AcmeSettings,
    account: &Account,
    requested: &mut Option<RequestedOrder>,
) -> Result<Option<(Order, SigningRequest)>, AcmeError> {
    let known = requested.take();
    let Some(known) = known.filter(|known| known.is_for(settings)) else {
        return Ok(None);
    };
    let mut order = match account
        .order(known.url.clone())
        .await
        .map_err(AcmeError::from)
    {
        Ok(order) => order,
        Err(error) if error.is_inconclusive() => {
            *requested = Some(known);
            return Err(error);
        }
        // Authorities delete old orders.
        Err(_) => return Ok(None),
    };
    match order.state().status {
        OrderStatus::Ready | OrderStatus::Processing | OrderStatus::Valid => {
            Ok(Some((order, known.request)))
        }
        OrderStatus::Pending | OrderStatus::Invalid => Ok(None),
    }
}

/// Places an order, proves control over its hosts, and makes its signing request.
async fn prepare(
    settings: &AcmeSettings,
    account: &Account,
    responder: &Arc<dyn Responder>,
    replaced: Option<CertificateIdentifier<'_>>,
) -> Result<(Order, SigningRequest), AcmeError> {
    let hosts = settings.hosts.iter();
    let hosts: Vec<Identifier> = hosts.cloned().map(Identifier::Dns).collect();
    let mut order = place(account, &hosts, replaced).await?;
    let mut answers = Answers {
        responder: Arc::clone(responder),
        published: Vec::new(),
    };
    answer_all(&mut order, settings, &mut answers).await?;
    wait_until_ready(&mut order).await?;
    drop(answers);
    let own = settings.clone();
    let request = blocking(move || signing_request(&own.hosts, own.key_type)).await?;
    Ok((order, request))
}

/// Waits until the authority has validated every host.
pub(crate) async fn wait_until_ready(order: &mut Order) -> Result<(), AcmeError> {
    match order.poll_ready(&POLLS).await {
        Ok(OrderStatus::Ready) => Ok(()),
        Ok(_) => Err(refusal(order, None).await),
        Err(error) => Err(refusal(order, Some(error)).await),
    }
}

/// Sends the signing request, unless that was done before; returns the checked chain in PEM.
pub(crate) async fn finish(
    order: &mut Order,
    request: &SigningRequest,
    hosts: &[String],
    key_type: AcmeKeyType,
    now: SystemTime,
) -> Result<String, AcmeError> {
    if order.state().status == OrderStatus::Ready {
        order.finalize_csr(&request.der).await?;
    }
    let chain = order.poll_certificate(&POLLS).await?;
    let parsed = StoredCertificate::parse(chain.as_bytes())?;
    parsed.check(hosts, key_type, &request.public_key, now)?;
    Ok(chain)
}

/// Places the order; repeats it without `replaced` if the authority does not accept that.
pub(crate) async fn place(
    account: &Account,
    hosts: &[Identifier],
    replaced: Option<CertificateIdentifier<'_>>,
) -> Result<Order, AcmeError> {
    if let Some(replaced) = replaced {
        let order = NewOrder::new(hosts).replaces(replaced);
        if let Ok(order) = account.new_order(&order).await {
            return Ok(order);
        }
    }
    Ok(account.new_order(&NewOrder::new(hosts)).await?)
}

/// Answers the challenges of hosts that are not validated yet.
async fn answer_all(
    order: &mut Order,
    settings: &AcmeSettings,
    answers: &mut Answers,
) -> Result<(), AcmeError> {
    let kind = match settings.challenge {
        Challenge::Http01 => ChallengeType::Http01,
        Challenge::TlsAlpn01 => ChallengeType::TlsAlpn01,
        Challenge::Dns01(_) => ChallengeType::Dns01,
    };
    let mut authorizations = order.authorizations();
    while let Some(next) = authorizations.next().await {
        let mut authorization = next?;
        let host = authorization.identifier().to_string();
        if !is_pending(&authorization, &host)? {
            continue;
        }
        let Some(mut challenge) = authorization.challenge(kind.clone()) else {
            let challenge = settings.challenge.name();
            return Err(AcmeError::NotOffered { host, challenge });
        };
        let key = challenge.key_authorization();
        let token = challenge.token.clone();
        answers.publish(settings, &host, token, &key).await?;
        challenge.set_ready().await?;
    }
    Ok(())
}

impl Answers {
    async fn publish(
        &mut self,
        settings: &AcmeSettings,
        host: &str,
        token: String,
        key: &KeyAuthorization,
    ) -> Result<(), AcmeError> {
        match &settings.challenge {
            Challenge::Http01 => {
                self.responder.publish_token(&token, key.as_str());
                self.published.push(PublishedChallenge::Token(token));
            }
            Challenge::TlsAlpn01 => {
                let digest = key.digest();
                let digest = <&[u8; 32]>::try_from(digest.as_ref());
                let digest = digest.map_err(|error| AcmeError::Key(error.to_string()))?;
                let (certificate, own_key) = challenge_certificate(host, digest)?;
                let published = self
                    .responder
                    .publish_certificate(host, certificate, own_key);
                published?;
                self.published
                    .push(PublishedChallenge::Certificate(host.to_owned()));
            }
            Challenge::Dns01(command) => {
                let host = host.strip_prefix("*.").unwrap_or(host);
                let name = format!("_acme-challenge.{host}");
                let value = key.dns_value();
                // Removed after a failure as well, because the program may have created the record.
                self.published.push(PublishedChallenge::Record {
                    command: command.clone(),
                    name: name.clone(),
                    value: value.clone(),
                });
                let command = command.clone();
                let change = RecordChange::Present;
                blocking(move || dns_command::run(&command, change, &name, &value)).await?;
            }
        }
        Ok(())
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        for answer in self.published.drain(..) {
            match answer {
                PublishedChallenge::Token(token) => self.responder.withdraw_token(&token),
                PublishedChallenge::Certificate(host) => self.responder.withdraw_certificate(&host),
                PublishedChallenge::Record {
                    command,
                    name,
                    value,
                } => {
                    // A leftover record is harmless, because its value is used once.
                    let change = RecordChange::Cleanup;
                    drop(tokio::task::spawn_blocking(move || {
                        dns_command::run(&command, change, &name, &value)
                    }));
                }
            }
        }
    }
}

/// Reason why an order is not ready: the first failed challenge, or else `error`.
pub(crate) async fn refusal(order: &mut Order, error: Option<instant_acme::Error>) -> AcmeError {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        if authorization.refresh().await.is_err() {
            break;
        }
        let host = authorization.identifier().to_string();
        if let Some(refused) = refused_challenge(&authorization, &host) {
            return refused;
        }
    }
    error.map_or(AcmeError::TimedOut, AcmeError::from)
}

/// Returns true if `host` still has to be validated.
///
/// # Errors
/// The authority has refused the host.
pub(crate) fn is_pending(
    authorization: &AuthorizationHandle<'_>,
    host: &str,
) -> Result<bool, AcmeError> {
    match authorization.status {
        AuthorizationStatus::Pending => Ok(true),
        AuthorizationStatus::Valid => Ok(false),
        AuthorizationStatus::Invalid
        | AuthorizationStatus::Revoked
        | AuthorizationStatus::Expired
        | AuthorizationStatus::Deactivated => {
            let refused = refused_challenge(authorization, host);
            Err(refused.unwrap_or(AcmeError::TimedOut))
        }
    }
}

fn refused_challenge(authorization: &AuthorizationHandle<'_>, host: &str) -> Option<AcmeError> {
    let mut challenges = authorization.challenges.iter();
    let problem = challenges.find_map(|challenge| challenge.error.as_ref())?;
    let host = Some(host.to_owned());
    Some(AcmeError::Refused(Refusal::new(host, problem)))
}

#[cfg(test)]
mod tests;
