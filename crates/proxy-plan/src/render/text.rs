//! The text form of an explanation, for a terminal.

mod plan_diff;
mod table;
mod value;

pub use plan_diff::diff_text;

use crate::explain::{
    Candidate, Explanation, Handler, Lost, MatchReason, Named, Nearest, Readiness, Rejected, Text,
};
use proxy_errors::Problem;
use proxy_model::{EffectiveSetting, Model, Sources, effective};
use proxy_routing::{ConditionKind, DecidingRank, Unmet};
use std::net::IpAddr;
use table::Table;
use value::Shapes;

/// Maximum number of routes that are listed; the rest is counted.
const MAX_LISTED_ROUTES: usize = 20;

/// The explanation as a page: aligned, in plain ASCII unless the configuration is not, with control
/// characters escaped.
#[must_use]
pub fn text(explanation: &Explanation) -> String {
    let Explanation {
        method,
        host,
        path,
        query,
        client_ip,
        ignored,
        is_tls: _,
        listener,
        winner,
        agents,
        answerer,
        rewritten,
        rejected,
        settings: applied,
        sources,
    } = explanation;
    let mut page = Table::line(&format!("{method} {}{}", host.sent, target(path, query)));
    let mut facts = Table::default();
    if let Some(listener) = listener {
        facts.row(["listener", &placed(listener)]);
    }
    request(&mut facts, host, path, *client_ip);
    for name in ignored {
        facts.row([
            "ignored",
            &format!("{name}: only a peer of `trusted-proxies` may send it"),
        ]);
    }
    if let Some(winner) = winner {
        facts.row(["route", &placed(&winner.route)]);
        taken(&mut facts, &winner.taken);
    }
    for (position, agent) in agents.iter().enumerate() {
        let label = if position == 0 { "agents" } else { "" };
        facts.row([label, &placed(agent)]);
    }
    answer(&mut facts, answerer);
    if let Some(target) = rewritten {
        facts.row(["rewritten", target]);
    }
    page.push('\n');
    page.push_str(&facts.page());
    page.push_str(&others(rejected));
    page.push('\n');
    page.push_str(&settings(sources, applied));
    page
}

fn target(path: &Text, query: &str) -> String {
    if query.is_empty() {
        return path.sent.clone();
    }
    format!("{}?{query}", path.sent)
}

fn placed(named: &Named) -> String {
    format!("{} ({})", named.name, named.source)
}

fn request(facts: &mut Table<2>, host: &Text, path: &Text, client_ip: Option<IpAddr>) {
    facts.row(["host", &both(host)]);
    // A relayed connection has no path.
    if !path.sent.is_empty() || path.seen.is_none() {
        facts.row(["path", &both(path)]);
    }
    if let Some(ip) = client_ip {
        facts.row(["client", &ip.to_string()]);
    }
}

/// The normalized text, and the text as sent if it differs.
fn both(text: &Text) -> String {
    let Text { sent, seen } = text;
    match seen {
        None => format!("{sent} (refused)"),
        Some(seen) if seen.is_empty() => "none".to_owned(),
        Some(seen) if seen == sent => seen.clone(),
        Some(seen) => format!("{seen} (sent as {sent})"),
    }
}

fn taken(facts: &mut Table<2>, taken: &MatchReason) {
    let conditions = match taken {
        MatchReason::Matched(conditions) => conditions,
        MatchReason::Default { source } => {
            let text = format!("none; it is the listener's default-route ({source})");
            facts.row(["matched", &text]);
            return;
        }
    };
    if conditions.is_empty() {
        facts.row(["matched", "every request"]);
    }
    for (position, condition) in conditions.iter().enumerate() {
        let label = if position == 0 { "matched" } else { "" };
        let (setting, value) = (condition.setting, &condition.value);
        facts.row([label, &format!("{setting} {value} ({})", condition.source)]);
    }
}

fn answer(facts: &mut Table<2>, answerer: &Handler) {
    match answerer {
        Handler::Upstream {
            upstream,
            target: _,
            candidates,
        } => {
            facts.row(["answer", &format!("upstream {}", placed(upstream))]);
            targets(facts, candidates);
        }
        Handler::Builtin(handler) => {
            facts.row(["answer", &format!("the proxy itself: {handler}")]);
        }
        Handler::Files(root) => {
            facts.row(["answer", &format!("files below {}", placed(root))]);
        }
        Handler::Redirect { status, location } => {
            facts.row(["answer", &format!("redirect {status} to {location}")]);
        }
        Handler::Respond { status, body_bytes } => {
            let text = format!("response {status} of the route, {body_bytes} bytes");
            facts.row(["answer", &text]);
        }
        Handler::Refused {
            problem,
            nearest,
            candidates,
        } => {
            refusal(facts, problem, nearest.as_ref());
            targets(facts, candidates);
        }
    }
}

fn refusal(facts: &mut Table<2>, problem: &Problem, nearest: Option<&Nearest>) {
    let (status, code) = (problem.status().as_u16(), problem.error_type().code());
    facts.row(["answer", &format!("{status} {code}")]);
    facts.row([
        "reason",
        &format!("{}: {}", problem.reason(), problem.log_message()),
    ]);
    if let Some(Nearest { route, unmet }) = nearest {
        facts.row([
            "nearest",
            &format!("{}: {}", placed(route), unmet_text(unmet)),
        ]);
    }
}

fn targets(facts: &mut Table<2>, candidates: &[Candidate]) {
    let addresses = candidates.iter().map(address_and_name);
    let addresses: Vec<String> = addresses.collect();
    let longest = addresses.iter().map(|one| one.chars().count()).max();
    let width = longest.unwrap_or_default();
    let rows = candidates.iter().zip(&addresses).enumerate();
    for (position, (Candidate { readiness, .. }, address)) in rows {
        let label = if position == 0 { "targets" } else { "" };
        let state = match readiness {
            Readiness::Next => "next",
            Readiness::Ready => "ready",
            Readiness::Backup => "backup",
            Readiness::Draining => "draining",
            Readiness::Unhealthy(None) => "unhealthy",
            Readiness::Unhealthy(Some(error)) => &format!("unhealthy: {error}"),
        };
        facts.row([label, &format!("{address:width$}  {state}")]);
    }
}

/// The address, with the name that it is resolved from.
fn address_and_name(candidate: &Candidate) -> String {
    let Candidate { address, name, .. } = candidate;
    match name {
        Some(name) if name == address => format!("{address} (by DNS)"),
        Some(name) => format!("{address} ({name})"),
        None => address.clone(),
    }
}

/// The routes that do not take the request: those with fulfilled conditions first.
fn others(rejected: &[Rejected]) -> String {
    if rejected.is_empty() {
        return String::new();
    }
    let outranked = |one: &&Rejected| matches!(one.why, Lost::Outranked { .. });
    let close = rejected.iter().filter(outranked);
    let far = rejected.iter().filter(|one| !outranked(one));
    let mut table = Table::default();
    for Rejected {
        route,
        why,
        priority,
    } in close.chain(far).take(MAX_LISTED_ROUTES)
    {
        table.row([&route.name, &why_text(why, *priority), &route.source]);
    }
    let mut page = format!("\nother routes\n{}", table.indented());
    let more = rejected.len().saturating_sub(MAX_LISTED_ROUTES);
    if more > 0 {
        page.push_str(&Table::line(&format!("  and {more} more, all in --json")));
    }
    page
}

fn why_text(why: &Lost, priority: i32) -> String {
    match why {
        Lost::Condition(unmet) => unmet_text(unmet),
        Lost::Outranked { by, because } => match because {
            DecidingRank::Priority => format!("matches; {by} is above its priority {priority}"),
            DecidingRank::Path => format!("matches; the path of {by} is more specific"),
            DecidingRank::Host => format!("matches; the host of {by} is more specific"),
            DecidingRank::Conditions => format!("matches; more conditions of {by} hold"),
            DecidingRank::Order => format!("matches; {by} precedes it in the file"),
        },
    }
}

fn unmet_text(unmet: &Unmet) -> String {
    let Unmet { kind, wanted, got } = unmet;
    // Conditions on the path include the name of their setting.
    if *kind == ConditionKind::Path {
        return format!("requires {wanted}, got {got}");
    }
    format!("requires {kind} {wanted}, got {got}")
}

/// The value of a setting with its unit.
pub(crate) fn shown_value(setting: &EffectiveSetting) -> String {
    Shapes::from_registry().shown(setting)
}

/// All effective settings of `model`, as a page.
#[must_use]
pub fn in_force(model: &Model) -> String {
    settings(&model.sources, &effective(model))
}

/// Settings as a page: one table for each block, under its name.
fn settings(sources: &Sources, settings: &[EffectiveSetting]) -> String {
    let shapes = Shapes::from_registry();
    let mut page = String::new();
    for block in settings.chunk_by(|one, next| block_of(one) == block_of(next)) {
        let mut table = Table::default();
        for setting in block {
            let value = shapes.shown(setting);
            table.row([
                name_in_block(setting),
                &value,
                &sources.origin(setting.origin),
            ]);
        }
        let heading = block.first().map_or("", |setting| block_of(setting));
        if !page.is_empty() {
            page.push('\n');
        }
        page.push_str(&Table::line(heading));
        page.push_str(&table.indented());
    }
    page
}

/// The path of a setting's block.
fn block_of(setting: &EffectiveSetting) -> &str {
    let path = setting.path.as_str();
    let block = path.strip_suffix(setting.name());
    let block = block.or_else(|| path.rsplit_once('.').map(|(block, _)| block));
    block.map_or(path, |block| block.trim_end_matches('.'))
}

fn name_in_block(setting: &EffectiveSetting) -> &str {
    let rest = setting.path.strip_prefix(block_of(setting));
    rest.map_or("", |rest| rest.trim_start_matches('.'))
}
