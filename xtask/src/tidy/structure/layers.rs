//! Check: crates import and link only what their layer permits.

use crate::tidy::graph::{Graph, Package};
use crate::tidy::violation::Violation;

/// A row of the layer diagram in `docs/architecture.md`.
struct Row {
    /// Value of `package.metadata.architecture.layer`.
    layer: &'static str,
    /// Lists of crates in one row. A crate may import those after it in the same list.
    chains: &'static [&'static [&'static str]],
}

/// Rows from top to bottom. A crate may import crates of lower rows, or after it in its own chain.
const ROWS: &[Row] = &[
    Row {
        layer: "bin",
        chains: &[&["proxyd"], &["controld"]],
    },
    Row {
        layer: "engine",
        chains: &[
            &["proxy-server", "proxy-pipeline"],
            &["proxy-server", "proxy-admin"],
            &["proxy-admin"],
            &["control-api", "control-http", "control-app"],
            &["control-ui", "control-http", "control-app"],
        ],
    },
    Row {
        layer: "node",
        chains: &[&["control-client"], &["control-store"]],
    },
    Row {
        layer: "wire",
        chains: &[
            &["proxy-probe", "proxy-pool", "proxy-tls"],
            &["proxy-agent", "proxy-pool"],
            &["proxy-acme", "proxy-tls"],
            &["proxy-otlp", "proxy-tls"],
            &["proxy-dns"],
            &["proxy-agent-kit"],
            &["agent-check"],
            &["proxy-files"],
            &["proxy-http3"],
            &["proxy-redis"],
            &["proxy-top"],
            &["proxy-pool", "proxy-http1"],
        ],
    },
    Row {
        layer: "model",
        chains: &[
            &["proxy-plan", "proxy-config", "proxy-model"],
            &["proxy-migrate"],
            &["proxy-telemetry"],
            &["control-domain", "control-auth"],
            &["control-domain", "control-sso"],
            &["control-bundle", "control-auth"],
        ],
    },
    Row {
        layer: "core",
        chains: &[
            &["proxy-upstream", "proxy-health"],
            &["proxy-routing"],
            &["proxy-limits"],
            &["proxy-coding"],
            &["proxy-errors"],
            &["proxy-framing"],
            &["proxy-clock"],
            &["proxy-auth"],
            &["proxy-cache"],
            &["proxy-setting-files"],
            &["control-wire"],
            &["agent-protocol"],
        ],
    },
];

/// Layer of developer tools, which may import any crate. No released crate may import them.
const TOOL_LAYER: &str = "tool";
const TOOLS: &[&str] = &[
    "bench",
    "canonical",
    "demo",
    "package",
    "proxy-fuzz",
    "proxy-load",
    "proxy-testkit",
    "control-simulator",
    "control-testkit",
    "xtask",
    "xtask-kit",
    "examples",
    "readmes",
];

/// Packages that a layer must not link, even indirectly.
const OUT_OF_REACH: &[(&str, &[&str])] = &[
    (
        "core",
        &["tokio", "hyper", "rustls", "kdl", "miette", "metrics"],
    ),
    ("model", &["tokio", "hyper"]),
];

/// Returns crates in a wrong layer, forbidden imports, and forbidden links.
pub(in crate::tidy) fn violations(graph: &Graph) -> Vec<Violation> {
    let mut faults = Vec::new();
    for package in graph.members() {
        let Some(layer) = layer_of(&package.name) else {
            faults.push(fault(package, "is not in the table of layers"));
            continue;
        };
        if package.layer.as_deref() != Some(layer) {
            let what = format!("must say package.metadata.architecture.layer = \"{layer}\"");
            faults.push(fault(package, &what));
        }
        let forbidden = graph
            .needs(package)
            .filter(|need| need.member && !may_import(&package.name, &need.name));
        faults.extend(
            forbidden.map(|need| fault(package, &format!("({layer}) imports {}", need.name))),
        );
        faults.extend(links_out_of_reach(graph, package, layer));
    }
    faults
}

fn links_out_of_reach(graph: &Graph, package: &Package, layer: &str) -> Vec<Violation> {
    let barred = OUT_OF_REACH
        .iter()
        .filter(|(of, _)| *of == layer)
        .flat_map(|(_, names)| *names);
    let barred: Vec<&str> = barred.copied().collect();
    graph
        .reached(package)
        .iter()
        .filter(|way| way.last().is_some_and(|end| barred.contains(end)))
        .map(|way| fault(package, &format!("({layer}) links {}", way.join(" -> "))))
        .collect()
}

fn fault(package: &Package, what: &str) -> Violation {
    Violation::whole(&format!("{}/Cargo.toml", package.folder), what)
}

fn layer_of(name: &str) -> Option<&'static str> {
    if TOOLS.contains(&name) {
        return Some(TOOL_LAYER);
    }
    Some(ROWS.get(row_of(name)?)?.layer)
}

fn row_of(name: &str) -> Option<usize> {
    ROWS.iter()
        .position(|row| row.chains.iter().any(|chain| chain.contains(&name)))
}

fn may_import(own: &str, other: &str) -> bool {
    if TOOLS.contains(&own) {
        return true;
    }
    let (Some(own_row), Some(other_row)) = (row_of(own), row_of(other)) else {
        return false;
    };
    let in_order = own_row < other_row || (own_row == other_row && is_behind(own_row, own, other));
    in_order && crosses_planes_rightly(own, other)
}

fn is_behind(row: usize, own: &str, other: &str) -> bool {
    let chains = ROWS.get(row).map_or(&[][..], |row| row.chains);
    chains.iter().any(|chain| {
        let place = |name: &str| chain.iter().position(|link| *link == name);
        matches!((place(own), place(other)), (Some(a), Some(b)) if a < b)
    })
}

/// Returns true if an import between data plane and control plane is permitted; see
/// `docs/architecture.md`.
fn crosses_planes_rightly(own: &str, other: &str) -> bool {
    let control = |name: &str| name.starts_with("control");
    match (control(own), control(other)) {
        (true, false) => {
            ["proxy-acme", "proxy-tls"].contains(&other)
                || matches!(layer_of(other), Some("core" | "model"))
        }
        (false, true) => own == "proxyd" && matches!(other, "control-client" | "control-wire"),
        (true, true) => other != "control-client",
        (false, false) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::rendered;

    #[test]
    fn lower_rows_and_the_right_end_of_a_chain_may_be_imported() {
        let graph = Graph::ours(&[
            ("proxyd", "bin", &["proxy-server", "control-client"]),
            ("proxy-server", "engine", &["proxy-pipeline", "proxy-tls"]),
            ("proxy-pipeline", "engine", &["proxy-limits"]),
            ("proxy-tls", "wire", &[]),
            ("proxy-limits", "core", &[]),
            ("control-client", "node", &["proxy-tls"]),
            ("xtask", "tool", &["proxy-server"]),
        ]);
        assert_eq!(rendered(&violations(&graph)), [""; 0]);
    }

    #[test]
    fn upward_sideways_and_backward_imports_are_faults() {
        let graph = Graph::ours(&[
            ("proxy-limits", "core", &["proxy-model"]),
            ("proxy-model", "model", &["proxy-config"]),
            ("proxy-config", "model", &[]),
            ("proxy-admin", "engine", &["proxy-server", "proxy-testkit"]),
            ("proxy-server", "engine", &[]),
            ("proxy-testkit", "tool", &[]),
        ]);
        assert_eq!(
            rendered(&violations(&graph)),
            [
                "crates/proxy-admin/Cargo.toml: (engine) imports proxy-server",
                "crates/proxy-admin/Cargo.toml: (engine) imports proxy-testkit",
                "crates/proxy-limits/Cargo.toml: (core) imports proxy-model",
                "crates/proxy-model/Cargo.toml: (model) imports proxy-config",
            ]
        );
    }

    #[test]
    fn the_planes_meet_only_where_the_table_says() {
        let graph = Graph::ours(&[
            ("proxy-server", "engine", &["control-client"]),
            ("control-client", "node", &["proxy-pool"]),
            ("proxy-pool", "wire", &[]),
        ]);
        assert_eq!(
            rendered(&violations(&graph)),
            [
                "crates/control-client/Cargo.toml: (node) imports proxy-pool",
                "crates/proxy-server/Cargo.toml: (engine) imports control-client",
            ]
        );
    }

    #[test]
    fn the_core_reaches_no_runtime_even_indirectly() {
        let graph = Graph::ours(&[
            ("proxy-limits", "core", &["innocent"]),
            ("proxy-plan", "model", &["kdl"]),
            ("innocent", "", &["tokio"]),
            ("tokio", "", &[]),
            ("kdl", "", &[]),
        ]);
        assert_eq!(
            rendered(&violations(&graph)),
            ["crates/proxy-limits/Cargo.toml: (core) links proxy-limits -> innocent -> tokio"]
        );
    }

    #[test]
    fn an_unknown_crate_and_a_wrong_layer_are_faults() {
        let graph = Graph::ours(&[("proxy-new", "core", &[]), ("proxy-tls", "core", &[])]);
        assert_eq!(
            rendered(&violations(&graph)),
            [
                "crates/proxy-new/Cargo.toml: is not in the table of layers",
                "crates/proxy-tls/Cargo.toml: must say package.metadata.architecture.layer = \
                 \"wire\"",
            ]
        );
    }
}
