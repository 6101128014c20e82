//! Converts `map` blocks on the server name of TLS handshakes.

use super::parser::Directive;
use crate::site::Site;

/// Hosts, and the upstream or target for their connections.
#[derive(Debug)]
pub(super) struct Case<'d> {
    /// Hosts; empty for the default.
    pub(super) hosts: Vec<String>,
    pub(super) target: &'d str,
}

/// Cases of a map. If a case is not converted, later cases that match its names are left out, so
/// that its connections do not go elsewhere.
pub(super) fn cases<'d>(
    site: &mut Site,
    map: &'d Directive,
    is_target: impl Fn(&str) -> bool,
) -> Vec<Case<'d>> {
    let has_wildcards = map.children().iter().any(|it| it.name == "hostnames");
    let mut cases = Vec::new();
    let (mut has_default, mut has_any) = (true, true);
    for case in map.children() {
        let name = &*case.name;
        if matches!(name, "hostnames" | "volatile") {
            continue;
        }
        let hosts = hosts(name, has_wildcards);
        let target = case.word(0).filter(|target| is_target(target));
        match (hosts, target) {
            (Some(hosts), Some(target)) => cases.push(Case { hosts, target }),
            (hosts, _) => {
                // nginx tries expressions after all names.
                has_any &= hosts.is_none() && name.starts_with('~');
                has_default = false;
                site.note(
                    &case.place,
                    &case.shown(),
                    "write a route with `host`, a name or a wildcard for labels; names that no route is left for are refused until then",
                );
            }
        }
    }
    let is_any = |host: &String| host.starts_with('*');
    cases.retain(|case| match case.hosts.as_slice() {
        [] => has_default,
        hosts => has_any || !hosts.iter().any(is_any),
    });
    cases
}

/// Hosts of a name in a map; `None` without a counterpart.
fn hosts(name: &str, has_wildcards: bool) -> Option<Vec<String>> {
    if name == "default" {
        return Some(Vec::new());
    }
    let is_plain = |text: &str| {
        let mut bytes = text.bytes();
        !text.is_empty() && bytes.all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
    };
    let below = name.strip_prefix("*.").or(name.strip_prefix('.'));
    match below {
        Some(rest) if has_wildcards && is_plain(rest) => Some(if name.starts_with('.') {
            vec![rest.to_owned(), format!("*.{rest}")]
        } else {
            vec![format!("*.{rest}")]
        }),
        None if is_plain(name) && !name.ends_with('.') => Some(vec![name.to_owned()]),
        _ => None,
    }
}
