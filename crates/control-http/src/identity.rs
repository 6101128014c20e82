//! The actor of a request, behind its rate limit.

use crate::rate::{RateClass, client_ip};
use axum::http::Extensions;
use control_app::{Allowance, App, Error, Presented};
use control_domain::Actor;
use jiff::Timestamp;

/// The actor, after a token was taken from the bucket of the actor, or else of the address.
///
/// `accepts` says whether the credential proves anything at this path; if not, the request counts as one without a
/// credential. An address that used its bucket up on wrong credentials is not even compared any more, unless its
/// credential was accepted before: a node with a wrong key must not stop those beside it.
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
