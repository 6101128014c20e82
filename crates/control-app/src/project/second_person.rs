//! Independence of the two persons in an approval: neither may be able to sign in as the other.

use crate::error::Error;
use control_domain::{ApprovalRule, Refusal};
use control_store::Transaction;
use control_wire::{ProjectId, UserId};
use jiff::{SignedDuration, Timestamp};

/// Time for which a person that changed another's sign-in counts as the same person: 7 days, plus
/// the lifetime of a link.
const SIGN_IN_CHANGE: SignedDuration = SignedDuration::from_hours(8 * 24);

/// If the project's policy requires approvals: refuses two persons of which one changed how the
/// other signs in, after `begun` or within the last 7 days, and may therefore know the other's
/// password.
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
