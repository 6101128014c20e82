//! Lets in requests with a valid token.

use crate::exchange::Exchange;
use crate::headers::forwarding_claims::remove_alike;
use proxy_auth::TokenError;
use proxy_errors::{Detail, Problem, Reason};
use proxy_plan::{RoutePlan, TokenPlan};

/// Verifies the token of the request. Replaces the client's own fields by its claims, and removes
/// it unless it is forwarded.
pub(super) fn check(
    exchange: &mut Exchange,
    route: &RoutePlan,
    plan: &TokenPlan,
) -> Result<(), Problem> {
    let invalid = |detail| Problem::new(Reason::CredentialsInvalid, detail);
    let Some(keys) = plan.keys.current() else {
        return Err(Problem::new(Reason::TokenKeysUnavailable, Detail::None));
    };
    let unix = exchange.worker().time.unix(exchange.began());
    let now = i64::try_from(unix.as_secs()).unwrap_or(i64::MAX);
    let Some(token) = plan.token(exchange.head.headers.as_map()) else {
        return Err(invalid(Detail::None));
    };
    let claims = plan.rules.verify(token, &keys, now).map_err(|error| {
        if error == TokenError::UnknownKey {
            plan.keys.request();
        }
        invalid(Detail::text(error.to_string()))
    })?;
    plan.authorize(&claims)?;
    let fields = plan.claim_fields(&claims)?;
    if !plan.claim_names.is_empty() {
        // `Connection` of the client could otherwise have them removed.
        exchange.strip_claims();
        exchange.agent_fields.extend_from_slice(&plan.claim_names);
    }
    exchange.head.headers.edit(|headers| {
        if !plan.forward_token {
            plan.remove_token(headers);
        }
        for name in &plan.claim_names {
            headers.remove(name);
            remove_alike(headers, name.as_str());
        }
        for (name, value) in fields {
            headers.insert(name, value);
        }
    });
    let user = claims.text("sub").unwrap_or_default();
    exchange.set_user(route, user.into());
    Ok(())
}
