//! Generates `docs/reference/states.md`: a table for every state machine.

use crate::account::api_key::API_KEY_TRANSITIONS;
use crate::bundle::BUNDLE_TRANSITIONS;
use crate::bundle::signing_key::SIGNING_KEY_TRANSITIONS;
use crate::machine::Transition;
use crate::node::NODE_TRANSITIONS;
use crate::node::drift::DRIFT_TRANSITIONS;
use crate::node::enrolment_token::ENROLMENT_TOKEN_TRANSITIONS;
use crate::rollout::ROLLOUT_TRANSITIONS;
use std::fmt::{Display, Write as _};

const OPENING: &str = "\
# States of the control plane

<!-- Written by `cargo xtask reference` from the tables in the code; changes here are lost. -->

The code, the tests and this page read the same rows. An event without a row is refused with 409 `WRONG_STATE`.
";

const ROLLOUT: &str = "\
An operator submits, starts, approves, pauses, resumes, cancels and rolls back; everything else, and the pause or
failure of a batch that does not pass, is done by the scheduler. Each row is one transaction: a control plane that
is killed goes on from the row before or behind it. A rollout that runs, is paused, has failed or rolls back keeps
its nodes from other rollouts.
";

/// Text of the page.
pub fn states_md() -> String {
    let mut page = OPENING.to_owned();
    table(&mut page, "Nodes", "", NODE_TRANSITIONS);
    table(&mut page, "Bundles", "", BUNDLE_TRANSITIONS);
    table(&mut page, "Rollouts", ROLLOUT, ROLLOUT_TRANSITIONS);
    table(&mut page, "Drift", "", DRIFT_TRANSITIONS);
    table(&mut page, "API keys", "", API_KEY_TRANSITIONS);
    table(
        &mut page,
        "Enrolment tokens",
        "",
        ENROLMENT_TOKEN_TRANSITIONS,
    );
    table(&mut page, "Signing keys", "", SIGNING_KEY_TRANSITIONS);
    page
}

fn table<S: Display, E: Display>(
    page: &mut String,
    title: &str,
    about: &str,
    rows: &[Transition<S, E>],
) {
    let about = if about.is_empty() {
        String::new()
    } else {
        format!("{about}\n")
    };
    write!(
        page,
        "\n## {title}\n\n{about}| state | event | next state |\n|---|---|---|\n"
    )
    .unwrap_or_default();
    for Transition { from, event, to } in rows {
        writeln!(page, "| {from} | {event} | {to} |").unwrap_or_default();
    }
}
