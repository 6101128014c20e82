//! Admits requests with a valid token.

use crate::exchange::Exchange;
use crate::headers::forwarding_claims::remove_alike;
use http::HeaderMap;
use proxy_auth::TokenError;
use proxy_errors::{Detail, Problem, Reason};
use proxy_model::RequestValue;
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
    if has_user(route) && claims.field_value("sub").is_err() {
        let detail = Detail::text("no header field can carry the claim \"sub\"".to_owned());
        return Err(Problem::new(Reason::TokenClaimMissing, detail));
    }
    if !plan.claim_names.is_empty() {
        // `Connection` of the client could otherwise have them removed.
        exchange.strip_claims();
        exchange.agent_fields.extend_from_slice(&plan.claim_names);
    }
    // An upstream may take another spelling, or a trailer, for the token that was verified.
    exchange.agent_fields.extend(plan.token_field().cloned());
    exchange.head.headers.edit(|headers| {
        if !plan.forward_token {
            plan.remove_token(headers);
        }
        if let Some(name) = plan.token_field() {
            remove_alike(headers, name.as_str());
        }
        remove_claim_fields(headers, plan);
        for (name, value) in fields {
            headers.insert(name, value);
        }
    });
    let user = claims.text("sub").unwrap_or_default();
    exchange.set_user(route, user.into());
    Ok(())
}

/// Removes the client's own fields with the names of claims from a request that needs no token.
pub(super) fn remove_claims(exchange: &mut Exchange, plan: &TokenPlan) {
    let headers = &mut exchange.head.headers;
    headers.edit(|headers| remove_claim_fields(headers, plan));
}

fn remove_claim_fields(headers: &mut HeaderMap, plan: &TokenPlan) {
    for name in &plan.claim_names {
        headers.remove(name);
        remove_alike(headers, name.as_str());
    }
}

/// Returns true if header fields of the route have `{user}`.
fn has_user(route: &RoutePlan) -> bool {
    let mut edits = [&route.request_headers, &route.response_headers].into_iter();
    route.has_values && edits.any(|edits| edits.has_value(RequestValue::User))
}
