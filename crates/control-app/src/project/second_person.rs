//! The second of two persons: none that the first one could be.

use crate::error::Error;
use control_domain::{ApprovalRule, Refusal};
use control_store::Transaction;
use control_wire::{ProjectId, UserId};
use jiff::{SignedDuration, Timestamp};

/// Time in which a change of one person's sign-in by the other makes them one: 7 days, and the life of a link.
const SIGN_IN_CHANGE: SignedDuration = SignedDuration::from_hours(8 * 24);

/// While the project's policy wants approvals: refuses two persons of which one changed how the other signs in, after
/// `begun` or within the last 7 days. It may know the password of the other one.
///
/// # Errors
///
/// [`Refusal::DependentPerson`].
pub(crate) async fn check_independent(
    tx: &mut Transaction,
    project: ProjectId,
    first: Option<UserId>,
    second: Option<UserId>,
    begun: Timestamp,
    now: Timestamp,
) -> Result<(), Error> {
    let found = tx.project(project).await?.ok_or(Refusal::NotFound)?;
    let (Some(first), Some(second)) = (first, second) else {
        return Ok(());
    };
    if found.value.policy.rules.approve == ApprovalRule::None || first == second {
        return Ok(());
    }
    let since = begun.min(now - SIGN_IN_CHANGE);
    let by_first = tx.has_changed_sign_in(second, first, since).await?;
    if by_first || tx.has_changed_sign_in(first, second, since).await? {
        return Err(Refusal::DependentPerson.into());
    }
    Ok(())
}
