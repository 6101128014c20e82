//! First half of a sign-in: the request that the browser takes to the provider.

use super::{SsoIntent, SsoRequest, SsoStart};
use crate::account::session::own_session;
use crate::app::App;
use crate::call::visit::Visit;
use crate::error::Error;
use crate::sso::failure::SsoFailure;
use crate::sso::provider::{MetadataDemand, parse_url};
use crate::sso::record::into_error;
use control_auth::Secret;
use control_domain::{
    Access, Actor, OidcSettings, Refusal, SSO_ATTEMPT_LIFETIME, SamlSettings, SsoAttemptContents,
    SsoConnection, SsoPurpose, SsoSettings, Tenant, return_path,
};
use control_sso::oidc::{Attempt, AuthorizationRequest};
use control_sso::saml::{AuthnRequest, SpKey, request_id};
use control_store::{SsoPending, Versioned};
use control_wire::OrgId;

/// A sign-in with a request that is ready to be sent.
struct BegunSignIn {
    /// Secret that the provider returns: `state` of OpenID Connect, or `RelayState` of SAML.
    state: Secret,
    contents: SsoAttemptContents,
    /// URL at the provider, including the request.
    location: String,
}

impl App {
    /// Begins a sign-in, for any purpose.
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
            .saml_idp(connection, settings, MetadataDemand::SignIn, visit.now)
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
}

/// Checks the permission for the intent. A link needs a member with a fresh proof of identity, a
/// trial an administrator of the organization. The session of a proof is checked when the response
/// arrives.
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
