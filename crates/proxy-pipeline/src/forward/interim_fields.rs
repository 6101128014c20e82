//! Fields of a target's interim responses.

use crate::exchange::Exchange;
use crate::headers::names;
use http::HeaderName;
use http::header::LINK;
use proxy_plan::RoutePlan;

/// Returns true if the client gets the field of this name before the final response: neither the
/// route nor an agent edits it there, and it is not the proxy's own. Agents decide on the final
/// response only; if an agent sees or edits that response, `Link` alone passes.
pub(super) fn is_kept(exchange: &Exchange, route: &RoutePlan, name: &HeaderName) -> bool {
    if names::is_own(name) || route.edited_fields.has(name) {
        return false;
    }
    let agents = exchange.completion.record.agents.as_ref();
    *name == LINK || !agents.is_some_and(|agents| agents.act_on_response())
}
