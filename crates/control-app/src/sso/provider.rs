//! Documents of identity providers: fetched, and cached for a limited time.

use crate::app::App;
use crate::app::outbound::{OutboundAnswer, OutboundError};
use crate::sso::failure::SsoFailure;
use control_domain::{OidcSettings, SamlSettings, SsoConnection};
use control_sso::oidc::{
    Attempt, CallbackCode, Discovery, ExpectedToken, IdToken, KeyCache, KeySet, OidcError,
    TokenRequest, Tokens, add_user_info, discovery_url, verify_id_token,
};
use control_sso::saml::{IdpKey, IdpMetadata, SamlError};
use control_sso::{AssertedUser, WebUrl};
use control_store::Versioned;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const DISCOVERY_AGE: SignedDuration = SignedDuration::from_hours(1);
const METADATA_AGE: SignedDuration = SignedDuration::from_hours(24);
/// Minimum time between two requests to an address that failed. Any browser may begin a sign-in,
/// and a request may take ten seconds.
const FAILURE_AGE: SignedDuration = SignedDuration::from_secs(5);
/// Minimum time between two reads of metadata that are caused by an unknown certificate.
const METADATA_RETRY: SignedDuration = SignedDuration::from_mins(5);

/// Reason for reading SAML metadata; determines the maximum age of the stored copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetadataDemand {
    /// A sign-in begins or ends.
    SignIn,
    /// A response was signed by a key that the stored copy does not contain.
    UnknownKey,
}

/// A SAML identity provider, by its connection's settings and its metadata.
#[derive(Debug)]
pub(crate) struct SamlIdp {
    /// `None` if the settings do not name it and no response was accepted yet.
    pub(crate) entity_id: Option<String>,
    pub(crate) sso_url: WebUrl,
    pub(crate) keys: Vec<IdpKey>,
    pub(crate) wants_signed_requests: bool,
    /// Time when the metadata was read; `None` without metadata.
    pub(crate) read_at: Option<Timestamp>,
}

/// Metadata as stored in the database.
#[derive(Debug, Serialize, Deserialize)]
struct StoredMetadata {
    entity_id: String,
    sso_url: String,
    certificates: Vec<String>,
    wants_signed_requests: bool,
}

/// Issuer of the first accepted response, for a connection without an entity ID; stored in place of
/// metadata.
#[derive(Debug, Serialize, Deserialize)]
struct LearnedIssuer {
    entity_id: String,
}

/// Client's parameters for the exchange of an OpenID Connect code.
#[derive(Clone, Copy)]
pub(crate) struct OidcExchange<'a> {
    pub(crate) settings: &'a OidcSettings,
    pub(crate) client_secret: &'a str,
    pub(crate) redirect_uri: &'a str,
    pub(crate) attempt: &'a Attempt,
    pub(crate) code: &'a CallbackCode,
}

impl App {
    /// Fetches a public document; an address that failed within the last 5 seconds is not tried
    /// again.
    async fn fetch(
        &self,
        document: &'static str,
        url: &WebUrl,
        now: Timestamp,
    ) -> Result<OutboundAnswer, SsoFailure> {
        let failures = &self.sso_documents.failures;
        if let Some((reason, tried_at)) = failures.get(url.as_str())
            && now.duration_since(tried_at).abs() < FAILURE_AGE
        {
            return Err(SsoFailure::Outbound { document, reason });
        }
        let answer = match self.outbound() {
            Ok(outbound) => outbound.get(url, None).await,
            Err(error) => Err(error),
        };
        answer.map_err(|reason| {
            failures.insert(url.as_str().to_owned(), (reason, now));
            SsoFailure::Outbound { document, reason }
        })
    }

    /// The issuer's discovery document, cached for at most an hour.
    pub(crate) async fn discovery(
        &self,
        issuer: &str,
        now: Timestamp,
    ) -> Result<Arc<Discovery>, SsoFailure> {
        let cached = self.sso_documents.discoveries.get(issuer);
        if let Some((discovery, read_at)) = cached
            && now.duration_since(read_at).abs() < DISCOVERY_AGE
        {
            return Ok(discovery);
        }
        let document = "the discovery document";
        let url = parse_url(document, &discovery_url(issuer))?;
        let answer = self.fetch(document, &url, now).await?;
        let discovery = Arc::new(Discovery::parse(&answer.body, issuer)?);
        let kept = (Arc::clone(&discovery), now);
        self.sso_documents
            .discoveries
            .insert(issuer.to_owned(), kept);
        Ok(discovery)
    }

    async fn fetch_keys(&self, url: &WebUrl, now: Timestamp) -> Result<KeyCache, SsoFailure> {
        let answer = self.fetch("the key set", url, now).await?;
        let keys = KeyCache::new(KeySet::parse(&answer.body)?, answer.max_age_secs, now);
        self.sso_documents
            .keys
            .insert(url.as_str().to_owned(), keys.clone());
        Ok(keys)
    }

    /// Exchanges the code for tokens, verifies the ID token, and adds the claims of the user info
    /// endpoint.
    pub(crate) async fn oidc_user(
        &self,
        exchange: OidcExchange<'_>,
        now: Timestamp,
    ) -> Result<AssertedUser, SsoFailure> {
        let settings = exchange.settings;
        let discovery = self.discovery(&settings.issuer, now).await?;
        let tokens = self.exchange_code(exchange, &discovery).await?;
        let mut token = self
            .verify_token(exchange, &discovery, &tokens, now)
            .await?;
        let own = settings.userinfo_url.as_deref();
        let own = own.map(|url| parse_url("the user info", url)).transpose()?;
        if let Some(url) = own.as_ref().or(discovery.userinfo_endpoint.as_ref()) {
            let answer = match self.outbound() {
                Ok(outbound) => outbound.get(url, Some(&tokens.access_token)).await,
                Err(error) => Err(error),
            };
            let document = "the user info";
            let answer = answer.map_err(|reason| SsoFailure::Outbound { document, reason })?;
            add_user_info(&mut token, &answer.body)?;
        }
        Ok(AssertedUser::from(token))
    }

    async fn exchange_code(
        &self,
        exchange: OidcExchange<'_>,
        discovery: &Discovery,
    ) -> Result<Tokens, SsoFailure> {
        let OidcExchange {
            settings,
            client_secret,
            redirect_uri,
            attempt,
            code,
        } = exchange;
        let request = TokenRequest {
            client_id: &settings.client_id,
            client_secret,
            redirect_uri,
            attempt,
            code,
            secret_in_form: discovery.wants_secret_in_form,
        };
        let document = "the token endpoint";
        let own = settings.token_url.as_deref();
        let own = own.map(|url| parse_url(document, url)).transpose()?;
        let url = own.as_ref().unwrap_or(&discovery.token_endpoint);
        let basic = request.basic();
        let basic = basic
            .as_ref()
            .map(|basic| (basic.user.as_str(), basic.password.as_str()));
        let answer = match self.outbound() {
            Ok(outbound) => {
                outbound
                    .post_form(url, request.form().to_string(), basic)
                    .await
            }
            Err(error) => Err(error),
        };
        let answer = answer.map_err(|reason| SsoFailure::Outbound { document, reason })?;
        Ok(Tokens::parse(answer.is_success, &answer.body)?)
    }

    /// Verifies the ID token. An unknown key causes a refresh of the key set, at most once in half
    /// a minute.
    async fn verify_token(
        &self,
        exchange: OidcExchange<'_>,
        discovery: &Discovery,
        tokens: &Tokens,
        now: Timestamp,
    ) -> Result<IdToken, SsoFailure> {
        let expected = ExpectedToken {
            issuer: &exchange.settings.issuer,
            client_id: &exchange.settings.client_id,
            nonce: &exchange.attempt.nonce,
            access_token: &tokens.access_token,
        };
        let url = &discovery.jwks_uri;
        let cached = self.sso_documents.keys.get(url.as_str());
        let fresh = cached.filter(|cached| cached.is_fresh(now));
        let keys = match fresh {
            Some(keys) => keys,
            None => self.fetch_keys(url, now).await?,
        };
        let verified = verify_id_token(&tokens.id_token, &keys.keys, &expected, now);
        // A provider may replace a key without an ID, or under the same one.
        let may_be_rotated = matches!(verified, Err(OidcError::UnknownKey | OidcError::Signature));
        if may_be_rotated && keys.may_fetch_again(now) {
            let keys = self.fetch_keys(url, now).await?;
            let again = verify_id_token(&tokens.id_token, &keys.keys, &expected, now);
            return Ok(again?);
        }
        Ok(verified?)
    }

    /// The identity provider of a SAML connection. Metadata is read once a day, and for an unknown
    /// key at most once in five minutes; if it cannot be read, the last copy is used.
    pub(crate) async fn saml_idp(
        &self,
        connection: &Versioned<SsoConnection>,
        settings: &SamlSettings,
        demand: MetadataDemand,
        now: Timestamp,
    ) -> Result<SamlIdp, SsoFailure> {
        let org = connection.value.org;
        let Some(url) = &settings.idp_metadata_url else {
            let idp = merged(settings, None, None)?;
            if idp.entity_id.is_some() {
                return Ok(idp);
            }
            let mut tx = self.store.read().await?;
            let learned = tx.idp_metadata::<LearnedIssuer>(org).await?;
            let entity_id = learned.map(|(learned, _)| learned.entity_id);
            return Ok(SamlIdp { entity_id, ..idp });
        };
        let stored = self
            .store
            .read()
            .await?
            .idp_metadata::<StoredMetadata>(org)
            .await?;
        let max_age = match demand {
            MetadataDemand::SignIn => METADATA_AGE,
            MetadataDemand::UnknownKey => METADATA_RETRY,
        };
        if let Some((metadata, read_at)) = &stored
            && now.duration_since(*read_at).abs() < max_age
        {
            return merged(settings, Some(metadata), Some(*read_at));
        }
        match self.fetch_metadata(url, now).await {
            Ok(metadata) => {
                let idp = merged(settings, Some(&metadata), Some(now))?;
                let mut tx = self.store.begin().await?;
                tx.set_idp_metadata(org, connection.version, &metadata, now)
                    .await?;
                tx.commit().await?;
                Ok(idp)
            }
            Err(error) => match &stored {
                Some((metadata, read_at)) => merged(settings, Some(metadata), Some(*read_at)),
                None => Err(error),
            },
        }
    }

    /// Binds this version of the connection to the issuer of its first accepted response. Of two
    /// concurrent first responses with different issuers, one is refused.
    pub(crate) async fn learn_issuer(
        &self,
        connection: &Versioned<SsoConnection>,
        issuer: &str,
        now: Timestamp,
    ) -> Result<(), SsoFailure> {
        let learned = LearnedIssuer {
            entity_id: issuer.to_owned(),
        };
        let org = connection.value.org;
        let mut tx = self.store.begin().await?;
        let is_first = tx.set_first_idp_metadata(org, connection.version, &learned, now);
        if is_first.await? {
            return Ok(tx.commit().await?);
        }
        let known = tx.idp_metadata::<LearnedIssuer>(org).await?;
        let is_same = known.is_some_and(|(known, _)| known.entity_id == issuer);
        is_same.then_some(()).ok_or(SamlError::Issuer.into())
    }

    async fn fetch_metadata(
        &self,
        url: &str,
        now: Timestamp,
    ) -> Result<StoredMetadata, SsoFailure> {
        let document = "the metadata of the identity provider";
        let url = parse_url(document, url)?;
        let answer = self.fetch(document, &url, now).await?;
        let IdpMetadata {
            entity_id,
            sso_url,
            certificates,
            wants_signed_requests,
        } = IdpMetadata::parse(&answer.body)?;
        Ok(StoredMetadata {
            entity_id,
            sso_url: sso_url.as_str().to_owned(),
            certificates,
            wants_signed_requests,
        })
    }
}

/// Merges settings and metadata; settings take precedence. Skips unusable certificates of metadata.
fn merged(
    settings: &SamlSettings,
    metadata: Option<&StoredMetadata>,
    read_at: Option<Timestamp>,
) -> Result<SamlIdp, SsoFailure> {
    let published = metadata.map(|metadata| metadata.entity_id.as_str());
    let own = settings.idp_entity_id.as_deref();
    if own.is_some() && published.is_some() && own != published {
        return Err(SamlError::Metadata("the connection's idp_entity_id").into());
    }
    let entity_id = own.or(published).map(str::to_owned);
    let keys = if let Some(text) = &settings.idp_cert_pem {
        IdpKey::from_pem(text)?
    } else {
        let certificates = metadata.map_or(&[][..], |metadata| metadata.certificates.as_slice());
        let keys = certificates.iter().map(|text| IdpKey::from_base64(text));
        keys.filter_map(Result::ok).collect()
    };
    if keys.is_empty() {
        return Err(SamlError::Certificate.into());
    }
    let published = metadata.map(|metadata| metadata.sso_url.as_str());
    let sso_url = settings.idp_sso_url.as_deref().or(published);
    let missing = SamlError::Metadata("a SingleSignOnService with HTTP-Redirect");
    Ok(SamlIdp {
        entity_id,
        sso_url: sso_url.and_then(WebUrl::parse).ok_or(missing)?,
        keys,
        wants_signed_requests: metadata.is_some_and(|metadata| metadata.wants_signed_requests),
        read_at,
    })
}

pub(crate) fn parse_url(document: &'static str, text: &str) -> Result<WebUrl, SsoFailure> {
    let reason = OutboundError::Unsendable;
    WebUrl::parse(text).ok_or(SsoFailure::Outbound { document, reason })
}
