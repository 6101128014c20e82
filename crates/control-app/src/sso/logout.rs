//! Sign-out at the identity provider as well (OpenID Connect RP-Initiated Logout 1.0).

use crate::account::session::own_session;
use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use control_domain::{Refusal, SsoSettings};
use control_sso::oidc::logout_url;
use std::time::Duration;
use tokio::time::timeout;

/// Maximum wait for the provider's discovery document; the local session has ended already.
const MAX_WAIT: Duration = Duration::from_secs(2);

impl App {
    /// URL that ends the session at the identity provider of the request's session. `None` for
    /// sessions without a provider, for SAML, and if the provider publishes no such endpoint or
    /// does not answer.
    pub async fn provider_logout(&self, call: &Call) -> Result<Option<String>, Error> {
        let (_, session) = own_session(call)?;
        let mut tx = self.store.read().await?;
        let found = tx.session(session).await?.ok_or(Refusal::Ended)?;
        let Some(org) = found.origin.provider else {
            return Ok(None);
        };
        let connection = tx.sso_connection(org).await?;
        drop(tx);
        let Some(SsoSettings::Oidc(settings)) = connection.map(|found| found.value.settings) else {
            return Ok(None);
        };
        let asked = timeout(MAX_WAIT, self.discovery(&settings.issuer, call.now)).await;
        let Ok(Ok(discovery)) = asked else {
            return Ok(None);
        };
        let endpoint = discovery.end_session_endpoint.as_ref();
        let return_to = self.post_logout_redirect_uri();
        Ok(endpoint.map(|endpoint| logout_url(endpoint, &settings.client_id, &return_to)))
    }

    /// Page to which providers redirect browsers after sign-out; it must be registered with the
    /// provider.
    pub fn post_logout_redirect_uri(&self) -> String {
        let base = self.sso_site.public_url.as_deref().unwrap_or_default();
        format!("{base}/sign-in")
    }
}
