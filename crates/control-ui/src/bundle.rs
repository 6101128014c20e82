//! Pages of bundles.

mod checks;
mod choices;
pub(crate) mod detail;
pub(crate) mod difference;
pub(crate) mod editor;
pub(crate) mod explanation;
pub(crate) mod list;
pub(crate) mod of_services;
pub(crate) mod replay;
pub(crate) mod revoke;

use crate::view::component::{Status, Tone};
use control_domain::BundleState;

/// State as an icon and a word.
fn status(state: BundleState) -> Status {
    let (tone, icon, word) = match state {
        BundleState::Draft => (Tone::Off, "wait", "Not checked yet"),
        BundleState::Validated => (Tone::Busy, "busy", "Checked"),
        BundleState::Rejected => (Tone::Bad, "bad", "Rejected"),
        BundleState::Signed => (Tone::Ok, "ok", "Signed"),
        BundleState::Revoked => (Tone::Off, "off", "Revoked"),
    };
    Status::new(tone, icon, word)
}
