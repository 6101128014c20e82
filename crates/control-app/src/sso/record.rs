//! Records of failed sign-ins, for the connection's administrators.

use crate::app::App;
use crate::audit::value::done;
use crate::call::visit::Visit;
use crate::error::Error;
use crate::sso::failure::SsoFailure;
use control_domain::{Actor, SsoRefusal, Tenant};
use control_sso::AssertedUser;
use control_sso::oidc::OidcError;
use control_sso::saml::SamlError;
use control_store::SsoSignIn;
use control_wire::OrgId;
use serde_json::json;

impl App {
    /// Stores a failure for the connection's administrators. A response that answers no attempt is
    /// only logged, because any client can send one.
    pub(super) async fn note_failure(
        &self,
        visit: &Visit,
        org: OrgId,
        is_trial: bool,
        asserted: Option<&AssertedUser>,
        failure: SsoFailure,
    ) -> Error {
        let is_unbegun = matches!(
            failure,
            SsoFailure::Refused(SsoRefusal::NoAttempt)
                | SsoFailure::Oidc(OidcError::State)
                | SsoFailure::Saml(SamlError::Base64)
        );
        if let SsoFailure::Internal(error) = failure {
            return error;
        }
        let error = refused(org, visit, &failure);
        if is_unbegun {
            return error;
        }
        let sign_in = SsoSignIn {
            at: visit.now,
            refusal: Some(failure.to_string()),
            subject: asserted.map(|user| user.subject.clone()),
            email: asserted.and_then(|user| user.email.clone()),
            role: None,
            correlation_id: visit.correlation_id.clone(),
            is_trial,
        };
        match self.note_refused_sign_in(visit, org, &sign_in).await {
            Ok(()) => error,
            Err(failed) => failed,
        }
    }

    /// The audit log gets only failures of users that the provider confirmed: any client can send a
    /// response without one.
    async fn note_refused_sign_in(
        &self,
        visit: &Visit,
        org: OrgId,
        sign_in: &SsoSignIn,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        tx.note_sso_sign_in(org, self.time_id(sign_in.at), sign_in)
            .await?;
        if sign_in.subject.is_none() {
            return Ok(tx.commit().await?);
        }
        tx.note_change(done(&json!({
            "reason": sign_in.refusal, "subject": sign_in.subject, "email": sign_in.email,
        })));
        let (call, tenant) = (visit.call(Actor::System), Tenant::org(org));
        self.commit(tx, &call, "session.refused", tenant, org.0)
            .await
    }
}

/// Error for the browser: the same for most rules, so only the log names the broken rule.
fn refused(org: OrgId, visit: &Visit, failure: &SsoFailure) -> Error {
    let correlation_id = visit.correlation_id.as_str();
    tracing::info!(%org, correlation_id, reason = %failure, "sign-in refused");
    match failure {
        SsoFailure::Refused(SsoRefusal::EmailTaken) => Error::SsoEmailTaken,
        SsoFailure::Refused(SsoRefusal::NotAuthenticated) => Error::SsoNotAuthenticated,
        SsoFailure::Refused(SsoRefusal::OtherSession) => Error::SsoOtherSession,
        SsoFailure::Oidc(_)
        | SsoFailure::Saml(_)
        | SsoFailure::Outbound { .. }
        | SsoFailure::Refused(_)
        | SsoFailure::Internal(_) => Error::SsoRefused,
    }
}

/// Error for the browser, for a failure that is not stored.
pub(super) fn into_error(org: OrgId, visit: &Visit, failure: SsoFailure) -> Error {
    if let SsoFailure::Internal(error) = failure {
        return error;
    }
    refused(org, visit, &failure)
}
