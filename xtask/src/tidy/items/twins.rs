//! Check: no two public enums have the same variants. Such enums must be changed together, and a
//! variant missing in one of them is noticed late.

use crate::tidy::source::Source;
use crate::tidy::tree::Tree;
use crate::tidy::violation::Violation;
use std::collections::{BTreeMap, BTreeSet};

/// Permitted twins, by the places of their enums. Entries are only ever removed.
const KNOWN_TWINS: &[&[&str]] = &[
    &[
        "crates/agent-protocol/src/encoding.rs Encoding",
        "crates/proxy-model/src/agent.rs AgentEncoding",
    ],
    // The interface of the control plane has its own enums. `control-app` converts them with an
    // exhaustive match.
    &[
        "crates/control-domain/src/definition/managed_certificate.rs CertificateKeyType",
        "crates/proxy-model/src/listener/acme.rs AcmeKeyType",
    ],
    &[
        "crates/control-app/src/metric.rs MetricKind",
        "crates/proxy-telemetry/src/names/metric.rs Kind",
    ],
    &[
        "crates/proxy-model/src/listener.rs TlsVersion",
        "crates/proxy-tls/src/settings.rs TlsVersion",
    ],
    &[
        "crates/proxy-model/src/upstream.rs LoadBalancing",
        "crates/proxy-upstream/src/load_balancer.rs LoadBalancer",
    ],
];

/// Returns twins that are not permitted, and permitted ones that no longer exist.
pub(in crate::tidy) fn violations(tree: &Tree) -> Vec<Violation> {
    faults(&twins(tree), KNOWN_TWINS)
}

fn faults(twins: &[Vec<String>], known: &[&[&str]]) -> Vec<Violation> {
    let mut faults = Vec::new();
    for twins in twins {
        if known.iter().any(|known| *twins == **known) {
            continue;
        }
        if let Some((first, rest)) = twins.split_first()
            && let Some((path, name)) = first.split_once(' ')
        {
            let rest = rest.join(", ");
            let what = format!("{name} has the variants of {rest}: declare one");
            faults.push(Violation::whole(path, what));
        }
    }
    for known in known {
        if !twins.iter().any(|twins| *twins == **known) {
            let what = format!("no longer twins, remove them from the list: {known:?}");
            faults.push(Violation::whole("xtask/src/tidy/items/twins.rs", what));
        }
    }
    faults
}

/// Returns the places and names of public enums with the same variants, at least two.
fn twins(tree: &Tree) -> Vec<Vec<String>> {
    let mut enums: BTreeMap<BTreeSet<String>, Vec<String>> = BTreeMap::new();
    for (file, source) in tree.rust().filter(|(file, _)| file.path.contains("/src/")) {
        for (name, variants) in public_enums(source) {
            if variants.len() > 1 {
                let place = format!("{} {name}", file.path);
                enums.entry(variants).or_default().push(place);
            }
        }
    }
    let mut twins: Vec<_> = enums.into_values().filter(|all| all.len() > 1).collect();
    for twins in &mut twins {
        twins.sort();
    }
    twins.sort();
    twins
}

/// Returns the public enums without fields, except in tests, with their variants.
fn public_enums(source: &Source) -> Vec<(String, BTreeSet<String>)> {
    let code = source.code.get(..source.tests_start).unwrap_or_default();
    let mut enums = Vec::new();
    let mut lines = code.iter().map(|line| line.trim());
    while let Some(line) = lines.next() {
        let head = match line {
            "named! {" => lines.find(|line| line.ends_with('{')),
            _ => line.strip_prefix("pub enum "),
        };
        let Some(name) = head.and_then(|head| head.strip_suffix('{')) else {
            continue;
        };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "}").collect();
        enums.extend(variants(&body).map(|variants| (name.trim().to_owned(), variants)));
    }
    enums
}

/// Parses the variants in an enum's body; `None` if one has fields.
fn variants(body: &[&str]) -> Option<BTreeSet<String>> {
    let written = body
        .iter()
        .filter(|line| !line.is_empty() && !line.starts_with("#["));
    written
        .map(|line| {
            let line = line.trim_end_matches(',');
            let name = line.split_once(" =").map_or(line, |(name, _)| name);
            let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
            is_name.then(|| name.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::rendered;

    const ONE: &str = "//! One.\n\n/// A colour.\npub enum Colour {\n    /// Like fire.\n    Red,\n    \
                       #[default]\n    Blue,\n}\n";
    const OTHER: &str = "//! Other.\n\nnamed! {\n    /// A shade.\n    Shade {\n        /// Like the \
                         sea.\n        Blue = \"blue\",\n        Red = \"red\",\n    }\n}\n";

    fn found(texts: &[(&str, &str)], known: &[&[&str]]) -> Vec<String> {
        rendered(&faults(&twins(&Tree::from_files(texts)), known))
    }

    #[test]
    fn two_public_enums_with_the_same_variants_are_twins() {
        let both = [
            ("crates/a/src/one.rs", ONE),
            ("crates/b/src/other.rs", OTHER),
        ];
        assert_eq!(
            found(&both, &[]),
            [
                "crates/a/src/one.rs: Colour has the variants of crates/b/src/other.rs Shade: declare one"
            ]
        );
    }

    #[test]
    fn private_enums_and_those_with_fields_or_one_variant_are_none() {
        let private = ONE.replace("pub enum", "enum");
        let fields = ONE.replace("Blue", "Blue(u8)");
        let more = ONE.replace("Red,", "Red,\n    Green,");
        for other in [&private, &fields, &more] {
            let both = [
                ("crates/a/src/one.rs", ONE),
                ("crates/b/src/other.rs", other),
            ];
            assert_eq!(found(&both, &[]), [""; 0], "{other}");
        }
    }

    #[test]
    fn known_twins_are_listed_until_they_are_gone() {
        let known: &[&[&str]] = &[&["crates/a/src/one.rs Colour", "crates/b/src/other.rs Shade"]];
        let both = [
            ("crates/a/src/one.rs", ONE),
            ("crates/b/src/other.rs", OTHER),
        ];
        assert_eq!(found(&both, known), [""; 0]);
        assert_eq!(
            found(&both[..1], known),
            [
                "xtask/src/tidy/items/twins.rs: no longer twins, remove them from the list: \
              [\"crates/a/src/one.rs Colour\", \"crates/b/src/other.rs Shade\"]"
            ]
        );
    }
}
