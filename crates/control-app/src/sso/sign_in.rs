//! Sign-in through an organization's identity provider.
//!
//! No state is kept in the process: the response may arrive at another replica.

mod begin;
mod oidc;
mod saml;

use crate::account::session::NewSession;
use crate::app::App;
use crate::call::Call;
use crate::call::visit::Visit;
use crate::error::Error;
use crate::sso::arrival::{Arrival, SsoBrowser};
use crate::sso::failure::SsoFailure;
use control_auth::Secret;
use control_domain::{Name, Refusal, SsoAttemptContents, SsoConnection, SsoRefusal};
use control_store::{SsoPending, Versioned};
use control_wire::OrgId;

/// Parameters for beginning a sign-in.
#[derive(Clone, Copy, Debug)]
pub struct SsoRequest<'a> {
    /// Path to redirect to after the sign-in.
    pub return_to: &'a str,
    /// Secret of the browser's cookie from an earlier attempt. It is reused, so that sign-ins in
    /// two windows do not invalidate each other.
    pub browser: Option<&'a Secret>,
    /// Purpose of the sign-in.
    pub intent: SsoIntent<'a>,
}

/// Purpose of a sign-in at a provider, with the request's context if the browser is already signed
/// in.
#[derive(Clone, Copy, Debug)]
pub enum SsoIntent<'a> {
    /// Start a session.
    SignIn,
    /// Link a further identity to the user.
    Link(&'a Call),
    /// Renew the proof of identity of the request's session.
    Proof(&'a Call),
    /// Test the connection, by an administrator of the organization; changes nothing.
    Trial(&'a Call),
}

/// A sign-in that has begun.
#[derive(Debug)]
pub struct SsoStart {
    /// URL at the provider to redirect the browser to.
    pub location: String,
    /// Secret for the browser's cookie, which binds the response to it.
    pub browser: Secret,
}

/// A verified SAML response that waits for its browser.
#[derive(Debug)]
pub struct SsoTicket {
    /// Single-use secret for the URL that the browser is redirected to.
    pub secret: Secret,
    /// Secret for the cookie of the browser that posted an unsolicited response, which binds the
    /// ticket to it; `None` for an attempt, whose browser has its cookie.
    pub browser: Option<Secret>,
}

/// A completed sign-in.
#[derive(Debug)]
pub struct SsoOutcome {
    /// The new or renewed session; `None` if an identity was linked, or the connection tested.
    pub session: Option<NewSession>,
    /// Path to redirect to.
    pub return_to: String,
}

impl App {
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

    /// Finds the organization of a sign-in by its identifier or name.
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

    /// The OpenID Connect callback URL, to be registered with the provider.
    pub fn redirect_uri(&self, org: OrgId) -> String {
        let base = self.sso_site.public_url.as_deref().unwrap_or_default();
        format!("{base}/sso/{org}/oidc/callback")
    }
}
