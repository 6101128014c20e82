//! Second half of an OpenID Connect sign-in.

use super::SsoOutcome;
use crate::app::App;
use crate::call::visit::Visit;
use crate::error::Error;
use crate::sso::arrival::{Arrival, SsoBrowser, check_browser};
use crate::sso::failure::SsoFailure;
use crate::sso::provider::OidcExchange;
use control_domain::{SSO_ATTEMPT_LIFETIME, SsoAttemptContents, SsoRefusal, SsoSettings};
use control_sso::oidc::{Attempt, Callback, OidcError};
use control_store::SsoPending;
use control_wire::OrgId;

/// A callback with the attempt that its `state` belongs to.
struct BegunByOidc {
    callback: Callback,
    state: String,
    pending: SsoPending<SsoAttemptContents>,
}

impl App {
    /// Completes an OpenID Connect sign-in with the query of its callback.
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
            is_unsolicited: false,
            begun_at: Some(begun_at),
        })
    }
}
