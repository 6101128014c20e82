//! Admits requests with the right user and password, or a valid token.

use crate::exchange::Exchange;
use crate::limits::route_limits::RateLimitStatus;
use crate::policy::token;
use crate::worker::password_checks::{PasswordCheck, Verdict};
use http::header::AUTHORIZATION;
use proxy_errors::{Detail, Problem, Reason};
use proxy_limits::{ClientKey, RateDecision};
use proxy_plan::{BasicAuthPlan, CredentialsPlan, RoutePlan};
use std::rc::Rc;
use std::sync::Arc;

/// Checks the credentials of the request. Removes them unless the upstream gets them.
pub(crate) async fn check(
    exchange: &mut Exchange,
    route: &RoutePlan,
    credentials: &CredentialsPlan,
) -> Result<(), Problem> {
    if route.is_preflight(&exchange.request_head()) {
        if let CredentialsPlan::Token(token) = credentials {
            token::remove_claims(exchange, token);
        }
        return Ok(());
    }
    match credentials {
        CredentialsPlan::Basic(auth) => check_password(exchange, route, auth).await,
        CredentialsPlan::Token(token) => token::check(exchange, route, token),
    }
}

/// Compares the password, on another thread unless the client has proved it within the last minute.
async fn check_password(
    exchange: &mut Exchange,
    route: &RoutePlan,
    auth: &BasicAuthPlan,
) -> Result<(), Problem> {
    let headers = exchange.head.headers.as_map();
    let Some(credentials) = auth.credentials(headers) else {
        return Err(Problem::new(Reason::CredentialsInvalid, Detail::None));
    };
    let worker = Rc::clone(exchange.worker());
    let active = Rc::clone(exchange.active());
    let cache = active.credential_cache(route.index, || worker.ids.key_seed());
    let client = ClientKey::from(exchange.completion.record.client_ip);
    let digest = cache.borrow().digest(client.to_bytes(), &credentials);
    let now = exchange.began();
    let user: Box<str> = credentials.user().into();
    if !cache.borrow().contains(&digest, now) {
        let limits = active.limits.get(route.index);
        let check = PasswordCheck {
            users: Arc::clone(&auth.users),
            credentials,
            attempts: limits.and_then(|limits| limits.attempts.clone()),
            client,
            clock: worker.shared.clock,
            hashes: Arc::clone(&worker.shared.hashes),
            memory: Arc::clone(&worker.shared.memory),
        };
        // No thread for a client that has to wait.
        if let Some(decision) = check.refused() {
            return Err(too_many(exchange, decision));
        }
        match worker.password_checks.run(check).await {
            Ok(Verdict::Right) => cache.borrow_mut().insert(digest, now),
            Ok(Verdict::Wrong) => return Err(wrong(&user)),
            Ok(Verdict::TooMany(decision)) => return Err(too_many(exchange, decision)),
            Ok(Verdict::MemoryShort) => {
                let detail = Detail::text("no memory is left for the hash of the password");
                return Err(Problem::new(Reason::CredentialChecksBusy, detail));
            }
            Err(detail) => return Err(Problem::new(Reason::CredentialChecksBusy, detail)),
        }
    }
    if !auth.forward_credentials {
        let headers = &mut exchange.head.headers;
        headers.edit(|headers| {
            headers.remove(AUTHORIZATION);
        });
    }
    exchange.set_user(route, user);
    Ok(())
}

/// The problem of a wrong user or password. The user is named in the log only: the client gets no
/// information about it.
fn wrong(user: &str) -> Problem {
    let detail = Detail::text(format!("user {user:?}"));
    Problem::new(Reason::CredentialsInvalid, detail)
}

/// The problem of too many wrong passwords. Its response shows the limit, as for a rate limit.
fn too_many(exchange: &mut Exchange, decision: RateDecision) -> Problem {
    let time = &exchange.worker().time;
    let status = RateLimitStatus::new(decision, time.unix(time.elapsed()));
    exchange.record().rate = Some(status);
    let limit = u64::from(decision.limit);
    let detail = Detail::Limit {
        current: limit + 1,
        limit,
    };
    Problem::new(Reason::CredentialAttempts, detail).with_retry_after(decision.retry_after)
}
