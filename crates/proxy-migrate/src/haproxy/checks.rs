//! Rules that could refuse a request. If one is not migrated, the routes behind it answer 501.

use super::advice::advice;
use super::parser::Line;
use super::rule;
use crate::site::Site;

/// Actions of `http-request` and `http-response` that neither refuse requests nor change the path.
const PASSIVE: &[&str] = &[
    "add-header",
    "cache-store",
    "cache-use",
    "capture",
    "del-header",
    "disable-l7-retry",
    "do-resolve",
    "early-hint",
    "replace-header",
    "replace-value",
    "set-fc-mark",
    "set-fc-tos",
    "set-header",
    "set-log-level",
    "set-mark",
    "set-nice",
    "set-priority-class",
    "set-priority-offset",
    "set-src",
    "set-status",
    "set-timeout",
    "set-tos",
    "unset-var",
];

/// Returns true if a rule, when not migrated, could refuse requests or change the path. Rules that
/// answer requests are migrated with the frontend.
pub(super) fn is_check(line: &Line) -> bool {
    let action = line.word(1);
    match line.word(0) {
        "http-request" if rule::is_decision(line) || rule::rewrite(line).is_some() => false,
        "http-request" | "http-response" | "http-after-response" => {
            let counts = action.starts_with("track-sc") || action.starts_with("sc-");
            let names = action.split_once('(').map_or(action, |(name, _)| name);
            !(counts || PASSIVE.contains(&action) || names == "set-var" || names == "set-var-fmt")
        }
        "tcp-request" => {
            let action = if action == "inspect-delay" {
                action
            } else {
                line.word(2)
            };
            let passes = ["inspect-delay", "accept", "capture", "set-src"].contains(&action);
            !(passes || action.starts_with("track-sc") || action.starts_with("set-var"))
        }
        "filter" => !matches!(
            action,
            "bwlim-in" | "bwlim-out" | "cache" | "compression" | "trace"
        ),
        // An unknown `defaults` section, named by `from`, may have any rule.
        "from" | "block" | "reqdeny" | "reqideny" | "reqtarpit" | "reqitarpit" => true,
        _ => false,
    }
}

/// Returns true if the line is a rule on requests or connections.
pub(super) fn is_rule(line: &Line) -> bool {
    is_check(line) || line.word(0) == "tcp-request"
}

/// Notes the rules that could refuse requests; returns true if there is one.
pub(super) fn note_checks<'l>(site: &mut Site, lines: impl IntoIterator<Item = &'l Line>) -> bool {
    let mut is_closed = false;
    for line in lines {
        if is_check(line) {
            is_closed = true;
            note_check(site, line);
        }
    }
    is_closed
}

/// Notes a `replace-path` before rules that read the path, because routes compare the client's
/// original path. Returns true if there is one.
pub(super) fn note_rewrite<'l>(site: &mut Site, lines: impl Iterator<Item = &'l Line>) -> bool {
    let lines: Vec<&Line> = lines.collect();
    let is_rewrite = |line: &&&Line| rule::rewrite(line).is_some();
    let mut rewrites = lines.iter().filter(is_rewrite);
    let Some(replaced) = rewrites.clone().find(|line| line.word(1) == "replace-path") else {
        return false;
    };
    let is_conditional = |line: &Line| line.has("if") || line.has("unless");
    let after = lines
        .iter()
        .skip_while(|line| rule::rewrite(line).is_none());
    let is_late = |line: &&&Line| rule::is_decision(line);
    let is_backend = |line: &&&Line| line.word(0) == "use_backend";
    let mut inputs = after.filter(is_late).chain(lines.iter().filter(is_backend));
    let is_closed = inputs.any(|line| is_conditional(line)) || rewrites.nth(1).is_some();
    if is_closed {
        note_check(site, replaced);
    }
    is_closed
}

/// Notes a rule that changes the client's address before rules that read it. Returns true if there
/// is one.
pub(super) fn note_address<'l>(
    site: &mut Site,
    lines: impl Iterator<Item = &'l Line> + Clone,
) -> bool {
    let reads_address = |line: &Line| {
        let mut words = line.words.iter();
        let is_counter =
            line.word(1).starts_with("track-sc") || line.word(2).starts_with("track-sc");
        !is_counter && words.any(|word| word == "src")
    };
    let sets_address = |line: &&Line| line.words.iter().take(3).any(|word| word == "set-src");
    if !lines.clone().any(reads_address) {
        return false;
    }
    let mut is_closed = false;
    for line in lines.filter(sets_address) {
        is_closed = true;
        line.note(
            site,
            "write the proxies before it in `trusted-proxies` of the listener; its routes answer 501 until then",
        );
    }
    is_closed
}

/// Notes a rule that could refuse requests.
pub(super) fn note_check(site: &mut Site, line: &Line) {
    let advice = format!("{}; its routes answer 501 until then", advice(line.word(0)));
    line.note(site, &advice);
}
