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

/// Parameters of a new sign-in.
#[derive(Clone, Copy, Debug)]
pub struct SsoRequest<'a> {
    /// The path to go to in the end.
    pub return_to: &'a str,
    /// The cookie of an earlier beginning; kept, so that two windows do not disturb each other.
    pub browser: Option<&'a Secret>,
    /// Purpose of the sign-in: a session, a link, a test or a proof.
    pub intent: SsoIntent<'a>,
}

/// The purpose of a sign-in at a provider, with the request of a browser that is signed in already.
#[derive(Clone, Copy, Debug)]
pub enum SsoIntent<'a> {
    /// Begins a session.
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
