//! List of an organization's signing keys.

use crate::frame::confirmation::confirmation;
use crate::frame::form::Faults;
use crate::frame::{Frame, NavEntry, foot, show as shown};
use crate::request::failure::Failure;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{NextPage, RelativeTime, Status, Tone, when};
use crate::view::confirm::Confirm;
use crate::view::link::Link;
use crate::view::listing;
use crate::view::phrase::{ago, short};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::PageOrder;
use control_domain::{Access, SigningKey, SigningKeyState, Tenant};
use control_wire::{OrgId, SigningKeyId};
use jiff::Timestamp;
use std::sync::Arc;

/// Maximum number of keys shown.
const PAGE_ROWS: usize = 100;

#[derive(Template)]
#[template(path = "signing_keys.html")]
struct KeysPage {
    frame: Frame,
    org: OrgId,
    heading: String,
    rows: Vec<Row>,
    more: NextPage,
    may_write: bool,
    foot: Option<String>,
}

struct Row {
    id: SigningKeyId,
    short: String,
    status: Status,
    role: &'static str,
    endorsed: String,
    made: RelativeTime,
    may_end: bool,
}

/// Texts of a confirmation page.
struct Question {
    heading: String,
    /// Effects of the operation, one sentence each.
    effects: Vec<String>,
    /// Path that the confirmation is posted to.
    action: String,
    button: &'static str,
}

/// Shows the keys, the active one first.
pub(crate) async fn list(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
) -> Result<Response, Failure> {
    let frame = Frame::org(
        &ui,
        &caller,
        org,
        NavEntry::SigningKeys.titled("Signing keys"),
    )
    .await?;
    let after = caller.visit.query.get("after");
    let page = listing::page(after, PageOrder::Newest, PAGE_ROWS);
    let mut found = ui.app.signing_keys(&caller.call, org, page).await?;
    let last = listing::cut(&mut found, PAGE_ROWS, |found| found.value.id.0);
    let mut keys: Vec<SigningKey> = found.into_iter().map(|found| found.value).collect();
    keys.sort_by_key(|key| {
        (
            key.state != SigningKeyState::Active,
            std::cmp::Reverse(key.id),
        )
    });
    let tenant = Tenant::org(org);
    let now = caller.visit.now;
    Ok(shown(&KeysPage {
        frame,
        org,
        heading: if after.is_empty() {
            heading(&keys, now)
        } else {
            "Older signing keys.".to_owned()
        },
        more: listing::next(last, "Show older keys"),
        rows: keys.iter().map(|key| row(key, now)).collect(),
        may_write: caller.may(Access::ADMINISTER, tenant),
        foot: foot(
            &caller,
            Access::ADMINISTER,
            tenant,
            "rotate and deactivate signing keys",
        ),
    }))
}

fn row(key: &SigningKey, now: Timestamp) -> Row {
    let (tone, icon, word, role) = match key.state {
        SigningKeyState::Active => (Tone::Ok, "ok", "Signs", "New bundles, orders and tokens"),
        SigningKeyState::Standby => (
            Tone::Busy,
            "wait",
            "Stands by",
            "Known to nodes, not signing yet",
        ),
        SigningKeyState::Retired => (
            Tone::Off,
            "off",
            "Verifies only",
            "Its signatures are accepted",
        ),
        SigningKeyState::Deactivated => (
            Tone::Off,
            "bad",
            "Deactivated",
            "Its signatures are refused",
        ),
    };
    let by = key
        .endorsement
        .as_ref()
        .map(|(by, _)| format!("…{}", short(by)));
    Row {
        id: key.id,
        short: short(key.id),
        status: Status::new(tone, icon, word),
        role,
        endorsed: by.unwrap_or_default(),
        made: when(key.created_at, now),
        may_end: matches!(
            key.state,
            SigningKeyState::Standby | SigningKeyState::Retired
        ),
    }
}

fn heading(keys: &[SigningKey], now: Timestamp) -> String {
    let active = keys.iter().find(|key| key.state == SigningKeyState::Active);
    match active {
        None => "No key signs.".to_owned(),
        Some(key) => format!(
            "Key …{} signs, created {}.",
            short(key.id),
            ago(key.created_at, now)
        ),
    }
}

/// The confirmation page of rotating the signing key.
pub(crate) async fn ask_rotation(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
) -> Result<Response, Failure> {
    let effects = vec![
        "The key that stands by signs from now on; without one, a new key is created and signs at once.".to_owned(),
        "Signatures of the former key stay valid. Nodes learn of the change with their next order.".to_owned(),
    ];
    let question = Question {
        heading: "Rotate signing key?".to_owned(),
        effects,
        action: format!("/orgs/{org}/signing-keys/rotate"),
        button: "Rotate the key",
    };
    confirm(&ui, &caller, org, question).await
}

/// Rotates the signing key.
pub(crate) async fn rotate(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
) -> Result<Response, Failure> {
    let note = match ui.app.rotate_signing_key(&caller.call, org).await {
        Ok(key) => Note::good(format!("Key …{} signs from now on.", short(key.value.id))),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/orgs/{org}/signing-keys"), ui.cookie))
}

/// The confirmation page of deactivating a key.
pub(crate) async fn ask_end(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((org, id)): Path<(OrgId, SigningKeyId)>,
) -> Result<Response, Failure> {
    let effects = vec![
        "What it signed is refused from now on: bundles that only this key signed, orders, and tokens of nodes.".to_owned(),
        "It cannot be undone.".to_owned(),
    ];
    let question = Question {
        heading: format!("Deactivate key …{}?", short(id)),
        effects,
        action: format!("/orgs/{org}/signing-keys/{id}/deactivate"),
        button: "Deactivate it",
    };
    confirm(&ui, &caller, org, question).await
}

/// Deactivates a key.
pub(crate) async fn end(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((org, id)): Path<(OrgId, SigningKeyId)>,
) -> Result<Response, Failure> {
    let note = match ui.app.deactivate_signing_key(&caller.call, org, id).await {
        Ok(_) => Note::good(format!("Key …{} is deactivated.", short(id))),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/orgs/{org}/signing-keys"), ui.cookie))
}

async fn confirm(
    ui: &Ui,
    caller: &Caller,
    org: OrgId,
    question: Question,
) -> Result<Response, Failure> {
    let Question {
        heading,
        effects,
        action,
        button,
    } = question;
    let back = format!("/orgs/{org}/signing-keys");
    let frame = Frame::org(
        ui,
        caller,
        org,
        NavEntry::SigningKeys.titled("Signing keys"),
    )
    .await?;
    Ok(confirmation(
        frame,
        Confirm {
            over: Link {
                text: "Signing keys".to_owned(),
                path: back.clone(),
            },
            heading,
            effects,
            action,
            back,
            csrf: caller.visit.csrf.clone(),
            button: button.to_owned(),
        },
    ))
}
