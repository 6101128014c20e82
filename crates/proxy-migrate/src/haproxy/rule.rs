//! Kinds of `http-request` rules.

use super::parser::Line;

/// Returns true if a rule answers a request, which a route does here.
pub(super) fn is_decision(line: &Line) -> bool {
    line.word(0) == "http-request" && matches!(line.word(1), "deny" | "redirect" | "return")
}

/// Returns true if a rule sets the path of all requests to one.
pub(super) fn is_path(line: &Line) -> bool {
    let is_conditional = line.has("if") || line.has("unless");
    line.word(0) == "http-request"
        && line.word(1) == "set-path"
        && !is_conditional
        && !line.word(2).contains('%')
}
