//! Identities at providers by which the user signs in.

use crate::frame::form::Faults;
use crate::request::failure::Failure;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{RelativeTime, when};
use axum::extract::State;
use axum::response::Response;
use control_app::{Page, PageOrder};
use control_domain::Access;
use control_wire::{IdentityId, OrgId};
use std::sync::Arc;

/// Maximum number of identities on the page.
const SHOWN: i64 = 100;

/// Section of the profile with the user's identities.
pub(super) struct Identities {
    pub(super) linked: Vec<Linked>,
    /// The user's organizations with single sign-on in which the user has no identity yet.
    pub(super) others: Vec<Other>,
    /// Whether linking is permitted, which needs a fresh proof of identity.
    pub(super) is_fresh: bool,
    /// Set for a provider's session without all rights of the user, which does not see the
    /// identities.
    pub(super) is_hidden: bool,
}

/// An identity that signs the user in.
pub(super) struct Linked {
    pub(super) id: IdentityId,
    pub(super) org: String,
    pub(super) subject: String,
    pub(super) seen: RelativeTime,
}

/// An organization with single sign-on.
pub(super) struct Other {
    pub(super) id: OrgId,
    pub(super) name: String,
}

/// Reads the identities of the user.
pub(super) async fn find(ui: &Ui, caller: &Caller) -> Result<Identities, Failure> {
    let (app, call) = (&ui.app, &caller.call);
    if call.actor.require_account_owner().is_err() {
        return Ok(Identities {
            linked: Vec::new(),
            others: Vec::new(),
            is_fresh: false,
            is_hidden: true,
        });
    }
    let first = Page {
        after: None,
        limit: SHOWN,
        order: PageOrder::Oldest,
    };
    let found = app.identities(call, first).await?;
    let orgs = app.orgs_with_sso(call).await?;
    let linked = found.iter().map(|own| Linked {
        id: own.id,
        // The organization may have ended its single sign-on since.
        org: orgs
            .iter()
            .find(|org| org.id == own.org)
            .map_or_else(|| own.issuer.clone(), |org| org.name.to_string()),
        subject: own.subject.clone(),
        seen: when(own.seen_at, caller.visit.now),
    });
    let others = orgs
        .iter()
        .filter(|org| found.iter().all(|own| own.org != org.id));
    let others = others.map(|org| Other {
        id: org.id,
        name: org.name.to_string(),
    });
    Ok(Identities {
        linked: linked.collect(),
        others: others.collect(),
        is_fresh: call.actor.holds(Access::FreshSession).is_ok(),
        is_hidden: false,
    })
}

/// Unlinks an identity.
pub(crate) async fn unlink(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(id): Path<IdentityId>,
) -> Result<Response, Failure> {
    let note = match ui.app.unlink_identity(&caller.call, id).await {
        Ok(()) => Note::good("That identity no longer signs you in."),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at("/profile", ui.cookie))
}
