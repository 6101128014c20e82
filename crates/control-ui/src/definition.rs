//! Services, upstreams and certificates: the inputs of compiled bundles.

pub(crate) mod certificates;
pub(crate) mod managed_certificates;
pub(crate) mod services;
pub(crate) mod upstreams;

use crate::request::fields::Fields;
use control_app::Call;

/// The call of a form that changes the version that its page showed: a change by another request in between is refused.
fn versioned(call: &Call, fields: &Fields) -> Call {
    let version = fields.get("version").parse::<i64>().ok();
    Call {
        if_match: version.map(|version| vec![version]),
        ..call.clone()
    }
}
