//! Sign-in through an organization's identity provider.
//!
//! No state is kept in the process: the response may arrive at another replica.

use crate::account::session::{NewSession, own_session};
use crate::app::App;
use crate::call::Call;
use crate::call::visit::Visit;
use crate::error::Error;
use crate::sso::arrival::{Arrival, SsoBrowser, check_browser};
use crate::sso::failure::SsoFailure;
use crate::sso::provider::{OidcExchange, SamlIdp, parse_url};
use crate::sso::record::into_error;
use base64::{Engine, engine::general_purpose::STANDARD};
use control_auth::Secret;
use control_domain::{
    Access, Actor, Name, OidcSettings, Refusal, SSO_ATTEMPT_LIFETIME, SSO_TICKET_LIFETIME,
    SamlSettings, SsoAttemptContents, SsoConnection, SsoPurpose, SsoRefusal, SsoSettings, Tenant,
    return_path,
};
use control_sso::AssertedUser;
use control_sso::oidc::{Attempt, AuthorizationRequest, Callback, OidcError};
use control_sso::saml::{
    AuthnRequest, Claims, Expected, SamlError, Solicited, SpKey, accept, request_id,
};
use control_store::{SsoPending, StoreError, Versioned};
use control_wire::OrgId;
use jiff::Timestamp;

/// Parameters of a new sign-in.
#[derive(Clone, Copy, Debug)]
pub struct SsoRequest<'a> {
    /// The path to go to in the end.
    pub return_to: &'a str,
    /// The cookie of an earlier beginning; kept, so that two windows do not disturb each other.
    pub browser: Option<&'a Secret>,
    /// Its purpose.
    pub intent: SsoIntent<'a>,
}

/// The purpose of a sign-in at a provider, with the request of a browser that is signed in already.
#[derive(Clone, Copy, Debug)]
pub enum SsoIntent<'a> {
    /// A session.
    SignIn,
    /// A further identity of the user.
    Link(&'a Call),
    /// Another proof of identity, for the session of the request.
    Proof(&'a Call),
    /// A trial of the connection by an administrator of the organization, without effect.
    Trial(&'a Call),
}

/// A sign-in that began.
#[derive(Debug)]
pub struct SsoStart {
    /// The URL to redirect the browser to.
    pub location: String,
    /// The secret for the browser's cookie.
    pub browser: Secret,
}

/// A sign-in that ended well.
#[derive(Debug)]
pub struct SsoOutcome {
    /// The new session, or the one that was proven again; `None` if an identity was linked, or the connection tried.
    pub session: Option<NewSession>,
    /// The path to go to.
    pub return_to: String,
}

/// A SAML response that was verified.
#[derive(Debug)]
pub enum SamlArrival {
    /// Ticket that the browser of the sign-in must present.
    Ticket(Secret),
    /// An unsolicited response, permitted by the connection.
    Unsolicited(Box<SsoOutcome>),
}

/// A sign-in with a request that is ready to be sent to the provider.
struct BegunSignIn {
    /// Secret that the provider returns: the state of OpenID Connect, or the relay state of SAML.
    state: Secret,
    contents: SsoAttemptContents,
    /// Address of the provider, with the request.
    location: String,
}

/// A callback of OpenID Connect with the attempt that it belongs to.
struct BegunByOidc {
    callback: Callback,
    state: String,
    pending: SsoPending<SsoAttemptContents>,
}

/// A SAML response, not verified, with the attempt that it belongs to.
struct BegunBySaml {
    xml: Vec<u8>,
    connection: Versioned<SsoConnection>,
    /// `None` for an unsolicited response.
    pending: Option<SsoPending<SsoAttemptContents>>,
}

impl App {
    /// Begins a sign-in, or the linking of an identity.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`] without a connection; [`Error::SsoRefused`] if the provider cannot be
    /// reached.
    pub async fn begin_sso(
        &self,
        visit: &Visit,
        org: OrgId,
        request: SsoRequest<'_>,
    ) -> Result<SsoStart, Error> {
        let purpose = purpose(org, request.intent)?;
        let connection = self.connection(org).await?;
        let browser = request.browser.cloned();
        let browser = browser.unwrap_or_else(|| self.new_secret());
        let begun = match &connection.value.settings {
            SsoSettings::Oidc(settings) => self.begin_oidc(visit, org, purpose, settings).await,
            SsoSettings::Saml(settings) => {
                self.begin_saml(visit, &connection, purpose, settings).await
            }
        };
        let begun = begun.map_err(|failure| into_error(org, visit, failure))?;
        let attempt = SsoPending {
            hash: begun.state.hash(),
            browser_hash: browser.hash(),
            org,
            contents: begun.contents,
            return_to: return_path(request.return_to).to_owned(),
            purpose,
            ends_at: visit.now + SSO_ATTEMPT_LIFETIME,
        };
        let mut tx = self.store.begin().await?;
        tx.insert_sso_attempt(&attempt).await?;
        tx.commit().await?;
        let location = begun.location;
        Ok(SsoStart { location, browser })
    }

    async fn begin_oidc(
        &self,
        visit: &Visit,
        org: OrgId,
        purpose: SsoPurpose,
        settings: &OidcSettings,
    ) -> Result<BegunSignIn, SsoFailure> {
        let discovery = self.discovery(&settings.issuer, visit.now).await?;
        let random = [(); 3].map(|()| self.environment.random());
        let attempt = Attempt::new(random);
        let own = settings.authorize_url.as_deref();
        let own = own
            .map(|url| parse_url("the authorization endpoint", url))
            .transpose()?;
        let location = AuthorizationRequest {
            endpoint: own.as_ref().unwrap_or(&discovery.authorization_endpoint),
            client_id: &settings.client_id,
            redirect_uri: &self.redirect_uri(org),
            scopes: &settings.scopes,
            attempt: &attempt,
            forces_login: purpose.is_proof(),
        }
        .url();
        let Attempt {
            state,
            nonce,
            verifier,
        } = attempt;
        let contents = SsoAttemptContents::Oidc { nonce, verifier };
        Ok(BegunSignIn {
            state: Secret::presented(&state),
            contents,
            location,
        })
    }

    async fn begin_saml(
        &self,
        visit: &Visit,
        connection: &Versioned<SsoConnection>,
        purpose: SsoPurpose,
        settings: &SamlSettings,
    ) -> Result<BegunSignIn, SsoFailure> {
        let idp = self
            .saml_idp(connection, settings, false, visit.now)
            .await?;
        let key = if idp.wants_signed_requests {
            let pkcs8 = self.sso_secret(&connection.value).await?;
            Some(SpKey::from_pkcs8(&pkcs8)?)
        } else {
            None
        };
        let request_id = request_id(self.environment.random());
        let relay_state = self.new_secret();
        let request = AuthnRequest {
            id: &request_id,
            sp_entity_id: &settings.sp_entity_id,
            acs_url: &settings.assertion_consumer_service_url,
            sso_url: &idp.sso_url,
            now: visit.now,
            force_authn: purpose.is_proof(),
        };
        let location = request.redirect(relay_state.reveal(), key.as_ref())?;
        let contents = SsoAttemptContents::Saml { request_id };
        Ok(BegunSignIn {
            state: relay_state,
            contents,
            location,
        })
    }

    /// Ends a sign-in by OpenID Connect with the query of its callback.
    ///
    /// # Errors
    ///
    /// [`Error::SsoRefused`] for every broken rule; the connection's administrators see which.
    pub async fn finish_oidc(
        &self,
        visit: &Visit,
        org: OrgId,
        browser: SsoBrowser<'_>,
        query: &str,
    ) -> Result<SsoOutcome, Error> {
        let begun = self.begun_by_oidc(visit, org, browser, query).await;
        let (is_trial, arrived) = match begun {
            Ok(begun) => {
                let is_trial = begun.pending.purpose.is_trial();
                (is_trial, self.arrive_by_oidc(visit, org, begun).await)
            }
            Err(failure) => (false, Err(failure)),
        };
        self.conclude(visit, org, is_trial, browser, arrived).await
    }

    async fn begun_by_oidc(
        &self,
        visit: &Visit,
        org: OrgId,
        browser: SsoBrowser<'_>,
        query: &str,
    ) -> Result<BegunByOidc, SsoFailure> {
        let callback = Callback::parse(query)?;
        let state = callback.state.clone().ok_or(OidcError::State)?;
        let pending = self.take_attempt(visit, org, &state).await?;
        check_browser(&pending, browser)?;
        Ok(BegunByOidc {
            callback,
            state,
            pending,
        })
    }

    async fn arrive_by_oidc(
        &self,
        visit: &Visit,
        org: OrgId,
        begun: BegunByOidc,
    ) -> Result<Arrival, SsoFailure> {
        let BegunByOidc {
            callback,
            state,
            pending,
        } = begun;
        let SsoAttemptContents::Oidc { nonce, verifier } = pending.contents else {
            return Err(SsoRefusal::NoAttempt.into());
        };
        let connection = self.connection(org).await?;
        let SsoSettings::Oidc(settings) = &connection.value.settings else {
            return Err(SsoRefusal::NoAttempt.into());
        };
        let discovery = self.discovery(&settings.issuer, visit.now).await?;
        let begun_at = pending.ends_at - SSO_ATTEMPT_LIFETIME;
        let attempt = Attempt {
            state,
            nonce,
            verifier,
        };
        let code = callback.check(&attempt.state, &settings.issuer, discovery.sends_iss)?;
        let secret = self.sso_secret(&connection.value).await?;
        let exchange = OidcExchange {
            settings,
            client_secret: std::str::from_utf8(&secret).unwrap_or_default(),
            redirect_uri: &self.redirect_uri(org),
            attempt: &attempt,
            code: &code,
        };
        Ok(Arrival {
            org,
            asserted: self.oidc_user(exchange, visit.now).await?,
            return_to: pending.return_to,
            purpose: pending.purpose,
            begun_at: Some(begun_at),
        })
    }

    /// Takes a SAML response that a browser posted from the provider's site, without a cookie.
    ///
    /// # Errors
    ///
    /// [`Error::SsoRefused`] for every broken rule; the connection's administrators see which.
    pub async fn accept_saml(
        &self,
        visit: &Visit,
        org: OrgId,
        response: &str,
        relay_state: &str,
    ) -> Result<SamlArrival, Error> {
        let begun = self.begun_by_saml(visit, org, response, relay_state).await;
        let (purpose, arrived) = match begun {
            Ok(begun) => {
                let pending = begun.pending.as_ref();
                let purpose = pending.map_or(SsoPurpose::SignIn, |pending| pending.purpose);
                (purpose, self.arrive_by_saml(visit, org, begun).await)
            }
            Err(failure) => (SsoPurpose::SignIn, Err(failure)),
        };
        match arrived {
            Ok((arrival, Some(browser_hash))) => {
                if let Err(refusal) = arrival.check_proof() {
                    let asserted = Some(&arrival.asserted);
                    let noted = self.note_failure(visit, org, false, asserted, refusal.into());
                    return Err(noted.await);
                }
                let ticket = self.new_secret();
                let pending = SsoPending {
                    hash: ticket.hash(),
                    browser_hash,
                    org,
                    contents: arrival.asserted,
                    return_to: arrival.return_to,
                    purpose,
                    ends_at: visit.now + SSO_TICKET_LIFETIME,
                };
                let mut tx = self.store.begin().await?;
                tx.insert_sso_ticket(&pending).await?;
                tx.commit().await?;
                Ok(SamlArrival::Ticket(ticket))
            }
            Ok((arrival, None)) => {
                let none = SsoBrowser {
                    browser: None,
                    actor: None,
                };
                let done = self.conclude(visit, org, false, none, Ok(arrival)).await;
                done.map(|outcome| SamlArrival::Unsolicited(Box::new(outcome)))
            }
            Err(failure) => {
                let is_trial = purpose.is_trial();
                Err(self.note_failure(visit, org, is_trial, None, failure).await)
            }
        }
    }

    async fn begun_by_saml(
        &self,
        visit: &Visit,
        org: OrgId,
        response: &str,
        relay_state: &str,
    ) -> Result<BegunBySaml, SsoFailure> {
        let compact: String = response.split_ascii_whitespace().collect();
        let xml = STANDARD.decode(compact).map_err(|_| SamlError::Base64)?;
        let connection = self.connection(org).await?;
        let SsoSettings::Saml(settings) = &connection.value.settings else {
            return Err(SsoRefusal::NoAttempt.into());
        };
        let pending = match self.take_attempt(visit, org, relay_state).await {
            Ok(pending) => Some(pending),
            Err(SsoFailure::Refused(_)) if settings.allow_unsolicited => None,
            Err(failure) => return Err(failure),
        };
        Ok(BegunBySaml {
            xml,
            connection,
            pending,
        })
    }

    /// The arrival, and the cookie's hash of the browser that began the sign-in; `None` if no
    /// browser did.
    async fn arrive_by_saml(
        &self,
        visit: &Visit,
        org: OrgId,
        begun: BegunBySaml,
    ) -> Result<(Arrival, Option<String>), SsoFailure> {
        let BegunBySaml {
            xml,
            connection,
            pending,
        } = begun;
        let SsoSettings::Saml(settings) = &connection.value.settings else {
            return Err(SsoRefusal::NoAttempt.into());
        };
        let solicited = match pending.as_ref().map(|pending| &pending.contents) {
            Some(SsoAttemptContents::Saml { request_id }) => Solicited::Request(request_id),
            Some(SsoAttemptContents::Oidc { .. }) => return Err(SsoRefusal::NoAttempt.into()),
            None => Solicited::Unsolicited,
        };
        let claims = self.verified_claims(&connection, settings, &xml, solicited, visit.now);
        let claims = claims.await?;
        self.use_once(org, &claims).await?;
        let asserted = AssertedUser::from(claims);
        let Some(pending) = pending else {
            let arrival = Arrival {
                org,
                asserted,
                return_to: "/".to_owned(),
                purpose: SsoPurpose::SignIn,
                begun_at: None,
            };
            return Ok((arrival, None));
        };
        let arrival = Arrival {
            org,
            asserted,
            return_to: pending.return_to,
            purpose: pending.purpose,
            begun_at: Some(pending.ends_at - SSO_ATTEMPT_LIFETIME),
        };
        Ok((arrival, Some(pending.browser_hash)))
    }

    /// An unknown certificate is looked up in refreshed metadata.
    async fn verified_claims(
        &self,
        connection: &Versioned<SsoConnection>,
        settings: &SamlSettings,
        xml: &[u8],
        solicited: Solicited<'_>,
        now: Timestamp,
    ) -> Result<Claims, SsoFailure> {
        let verify = |idp: &SamlIdp| {
            let expected = Expected {
                idp_entity_id: idp.entity_id.as_deref(),
                sp_entity_id: &settings.sp_entity_id,
                acs_url: &settings.assertion_consumer_service_url,
                solicited,
            };
            accept(xml, &idp.keys, &expected, now)
        };
        let idp = self.saml_idp(connection, settings, false, now).await?;
        let claims = verify(&idp);
        if claims != Err(SamlError::Signature) || idp.read_at.is_none() {
            let claims = claims?;
            if idp.entity_id.is_none() {
                self.learn_issuer(connection, &claims.issuer, now).await?;
            }
            return Ok(claims);
        }
        let idp = self.saml_idp(connection, settings, true, now).await?;
        Ok(verify(&idp)?)
    }

    async fn use_once(&self, org: OrgId, claims: &Claims) -> Result<(), SsoFailure> {
        let mut tx = self.store.begin().await?;
        let used = tx
            .use_assertion(org, &claims.replay_key(), claims.not_on_or_after)
            .await;
        match used {
            Ok(()) => Ok(tx.commit().await?),
            Err(StoreError::Conflict) => Err(SsoRefusal::Replay.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Completes a SAML sign-in: the browser that began it presents the ticket of its response.
    ///
    /// # Errors
    ///
    /// [`Error::SsoRefused`] for every broken rule; the connection's administrators see which.
    pub async fn finish_saml(
        &self,
        visit: &Visit,
        org: OrgId,
        browser: SsoBrowser<'_>,
        ticket: &Secret,
    ) -> Result<SsoOutcome, Error> {
        let arrived = self.arrive_with_ticket(visit, org, browser, ticket).await;
        self.conclude(visit, org, false, browser, arrived).await
    }

    async fn arrive_with_ticket(
        &self,
        visit: &Visit,
        org: OrgId,
        browser: SsoBrowser<'_>,
        ticket: &Secret,
    ) -> Result<Arrival, SsoFailure> {
        let mut tx = self.store.begin().await?;
        let found = tx.take_sso_ticket(&ticket.hash()).await?;
        tx.commit().await?;
        let found = found.filter(|found| found.org == org && visit.now < found.ends_at);
        let pending = found.ok_or(SsoRefusal::NoAttempt)?;
        check_browser(&pending, browser)?;
        Ok(Arrival {
            org,
            asserted: pending.contents,
            return_to: pending.return_to,
            purpose: pending.purpose,
            begun_at: None,
        })
    }

    async fn conclude(
        &self,
        visit: &Visit,
        org: OrgId,
        is_trial: bool,
        browser: SsoBrowser<'_>,
        arrived: Result<Arrival, SsoFailure>,
    ) -> Result<SsoOutcome, Error> {
        let arrival = match arrived {
            Ok(arrival) => arrival,
            Err(failure) => {
                return Err(self.note_failure(visit, org, is_trial, None, failure).await);
            }
        };
        match self.admit_sso_user(visit, browser, &arrival).await {
            Ok(outcome) => Ok(outcome),
            Err(failure) => {
                let is_trial = arrival.purpose.is_trial();
                let asserted = Some(&arrival.asserted);
                let noted = self.note_failure(visit, org, is_trial, asserted, failure);
                Err(noted.await)
            }
        }
    }

    async fn take_attempt(
        &self,
        visit: &Visit,
        org: OrgId,
        state: &str,
    ) -> Result<SsoPending<SsoAttemptContents>, SsoFailure> {
        let mut tx = self.store.begin().await?;
        let found = tx
            .take_sso_attempt(&Secret::presented(state).hash())
            .await?;
        tx.commit().await?;
        let found = found.filter(|found| found.org == org && visit.now < found.ends_at);
        Ok(found.ok_or(SsoRefusal::NoAttempt)?)
    }

    /// The organization of a sign-in, by its identifier or its name.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`] if there is no such organization.
    pub async fn org_of_sign_in(&self, text: &str) -> Result<OrgId, Error> {
        if let Ok(org) = text.parse() {
            return Ok(org);
        }
        let name = Name::parse("org", text).map_err(|_| Refusal::NotFound)?;
        let found = self.store.read().await?.org_by_name(&name).await?;
        Ok(found.ok_or(Refusal::NotFound)?.value.id)
    }

    async fn connection(&self, org: OrgId) -> Result<Versioned<SsoConnection>, Error> {
        let found = self.store.read().await?.sso_connection(org).await?;
        Ok(found.ok_or(Refusal::NotFound)?)
    }

    /// The callback of OpenID Connect, as the provider has it registered.
    pub fn redirect_uri(&self, org: OrgId) -> String {
        let base = self.sso_site.public_url.as_deref().unwrap_or_default();
        format!("{base}/sso/{org}/oidc/callback")
    }
}

/// To link takes a member with a fresh proof of identity; to try takes an administrator of the organization. The session
/// that is proven again is compared once the answer is here.
fn purpose(org: OrgId, intent: SsoIntent<'_>) -> Result<SsoPurpose, Error> {
    match intent {
        SsoIntent::SignIn => Ok(SsoPurpose::SignIn),
        SsoIntent::Link(call) => {
            call.actor.holds(Access::FreshSession)?;
            if let Actor::User { id, roles, .. } = &call.actor
                && roles.contains_key(&org)
            {
                return Ok(SsoPurpose::Link(*id));
            }
            Err(Refusal::NotFound.into())
        }
        SsoIntent::Proof(call) => {
            let (user, _) = own_session(call)?;
            Ok(SsoPurpose::Proof(user))
        }
        SsoIntent::Trial(call) => {
            call.actor.require(Access::ADMINISTER, Tenant::org(org))?;
            let (user, _) = own_session(call)?;
            Ok(SsoPurpose::Trial(user))
        }
    }
}
