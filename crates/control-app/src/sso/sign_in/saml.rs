//! Second half of a SAML sign-in: the posted response, and the ticket for the browser that began
//! the sign-in.

use super::{SsoOutcome, SsoTicket};
use crate::app::App;
use crate::call::visit::Visit;
use crate::error::Error;
use crate::sso::arrival::{Arrival, SsoBrowser, check_browser};
use crate::sso::failure::SsoFailure;
use crate::sso::provider::{MetadataDemand, SamlIdp};
use base64::{Engine, engine::general_purpose::STANDARD};
use control_auth::Secret;
use control_domain::{
    SSO_ATTEMPT_LIFETIME, SSO_TICKET_LIFETIME, SamlSettings, SsoAttemptContents, SsoConnection,
    SsoPurpose, SsoRefusal, SsoSettings,
};
use control_sso::AssertedUser;
use control_sso::saml::{Claims, Expected, SamlError, Solicited, accept};
use control_store::{SsoPending, SsoTicketContents, StoreError, Versioned};
use control_wire::OrgId;
use jiff::Timestamp;

/// An unverified SAML response with the attempt that its `RelayState` belongs to.
struct BegunBySaml {
    xml: Vec<u8>,
    connection: Versioned<SsoConnection>,
    /// `None` for an unsolicited response.
    pending: Option<SsoPending<SsoAttemptContents>>,
}

impl App {
    /// Accepts a SAML response; returns a one-time ticket, which the browser presents with its
    /// cookies. It posts the response from the provider's site, so the request carries none. An
    /// unsolicited response has no attempt with a cookie: the ticket brings one, so that its URL
    /// signs in no other browser.
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
    ) -> Result<SsoTicket, Error> {
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
            Ok((arrival, browser_hash)) => {
                if let Err(refusal) = arrival.check_proof() {
                    let asserted = Some(&arrival.asserted);
                    let noted = self.note_failure(visit, org, false, asserted, refusal.into());
                    return Err(noted.await);
                }
                let (browser_hash, browser) = browser_hash.map_or_else(
                    || {
                        let browser = self.new_secret();
                        (browser.hash(), Some(browser))
                    },
                    |hash| (hash, None),
                );
                let secret = self.new_secret();
                let pending = SsoPending {
                    hash: secret.hash(),
                    browser_hash,
                    org,
                    contents: SsoTicketContents {
                        asserted: arrival.asserted,
                        is_unsolicited: arrival.is_unsolicited,
                    },
                    return_to: arrival.return_to,
                    purpose,
                    ends_at: visit.now + SSO_TICKET_LIFETIME,
                };
                let mut tx = self.store.begin().await?;
                tx.insert_sso_ticket(&pending).await?;
                tx.commit().await?;
                Ok(SsoTicket { secret, browser })
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

    /// Verifies the response. Returns the arrival, and the cookie hash of the browser that began
    /// the sign-in; `None` for an unsolicited response.
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
                is_unsolicited: true,
                begun_at: None,
            };
            return Ok((arrival, None));
        };
        let arrival = Arrival {
            org,
            asserted,
            return_to: pending.return_to,
            purpose: pending.purpose,
            is_unsolicited: false,
            begun_at: Some(pending.ends_at - SSO_ATTEMPT_LIFETIME),
        };
        Ok((arrival, Some(pending.browser_hash)))
    }

    /// Verifies the response. An unknown certificate causes a refresh of the metadata.
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
        let idp = self
            .saml_idp(connection, settings, MetadataDemand::SignIn, now)
            .await?;
        let claims = verify(&idp);
        if claims != Err(SamlError::Signature) || idp.read_at.is_none() {
            let claims = claims?;
            if idp.entity_id.is_none() {
                self.learn_issuer(connection, &claims.issuer, now).await?;
            }
            return Ok(claims);
        }
        let idp = self
            .saml_idp(connection, settings, MetadataDemand::UnknownKey, now)
            .await?;
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

    /// Completes a SAML sign-in with the ticket of its response, presented by the browser that
    /// began it, or that posted an unsolicited response.
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
        let SsoTicketContents {
            asserted,
            is_unsolicited,
        } = pending.contents;
        Ok(Arrival {
            org,
            asserted,
            return_to: pending.return_to,
            purpose: pending.purpose,
            is_unsolicited,
            begun_at: None,
        })
    }
}
