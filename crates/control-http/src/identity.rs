//! The actor of a request, after its rate limit.

use crate::rate::{RateClass, client_ip};
use axum::http::Extensions;
use control_app::{Allowance, App, Error, Presented, StoreError};
use control_domain::{Access, Actor};
use jiff::{SignedDuration, Timestamp};

/// A request that waits longer than this for its body, or for news, is authenticated again.
const MAX_WAIT_UNCHECKED: SignedDuration = SignedDuration::from_millis(20);

/// The actor, after a token was taken from the bucket of the actor, or else of the address.
///
/// `accepts` returns true if the credential is valid evidence at this path; if not, the request
/// counts as one without a credential. For an address with an empty bucket after wrong credentials,
/// no further credentials are compared, except previously accepted credentials: a node with a wrong key
/// must not block its neighbours.
///
/// # Errors
///
/// [`Error::Store`] if the database does not answer.
pub async fn identify(
    app: &App,
    class: RateClass,
    presented: Option<Presented<'_>>,
    request: &Extensions,
    now: Timestamp,
    accepts: impl Fn(&Actor) -> bool,
) -> Result<(Allowance, Option<Actor>), Error> {
    let address = class.address(request);
    let Some(presented) = presented else {
        return Ok((address.take(app, now).await?, None));
    };
    if let Some(refusal) = address.known_refusal(app, now)
        && !app.is_known(presented)
    {
        return Ok((refusal, None));
    }
    let actor = match app.authenticate(presented, client_ip(request), now).await {
        Ok(actor) => Some(actor).filter(|actor| accepts(actor)),
        Err(Error::Unauthenticated) => None,
        Err(error) => return Err(error),
    };
    let bucket = actor.as_ref().and_then(|actor| class.actor_bucket(actor));
    let allowance = match bucket {
        Some(bucket) => app.take_token(&bucket, class.rate(), now).await?,
        None => address.take(app, now).await?,
    };
    Ok((allowance, actor))
}

/// Authenticates an actor admitted at `since` again, if its request has waited: its credential may have been
/// revoked, or its rights changed, since then. Takes no token of a rate limit.
///
/// # Errors
///
/// [`Error::Unauthenticated`] for a credential that is no longer accepted, [`Error::Refused`] without the right
/// to `access`, [`StoreError::Stale`] with other rights than before.
pub async fn check_again(
    app: &App,
    presented: Option<Presented<'_>>,
    request: &Extensions,
    actor: &Actor,
    access: Access,
    since: Timestamp,
) -> Result<(), Error> {
    let now = app.now();
    if now.duration_since(since) < MAX_WAIT_UNCHECKED {
        return Ok(());
    }
    let presented = presented.ok_or(Error::Unauthenticated)?;
    let found = app.authenticate(presented, client_ip(request), now).await?;
    found.holds(access)?;
    if found.has_rights_of(actor) {
        return Ok(());
    }
    Err(StoreError::Stale.into())
}
