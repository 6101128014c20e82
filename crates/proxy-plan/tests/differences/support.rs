//! Plans and their differences, from text.

use proxy_model::Model;
use proxy_plan::diff::{Region, RiskClass};
use proxy_plan::{Plan, PlanDiff, TargetRegistry};
use std::sync::Arc;

/// A configuration around routes.
pub(crate) fn around(routes: &str) -> String {
    format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:80" }} }}
        upstreams {{
            upstream "u" {{ target "10.0.0.1:80" }}
            upstream "v" {{ target "10.0.0.2:80" }}
        }}
        agents {{
            agent "waf" {{ unix-socket "/run/waf.sock"; failure-mode "closed" }}
            agent "jwt" {{ unix-socket "/run/jwt.sock"; failure-mode "closed" }}
        }}
        routes {{ {routes} }}
        "#
    )
}

pub(crate) fn plan(text: &str) -> Plan {
    let loaded =
        proxy_config::parse(text, "edge.kdl").unwrap_or_else(|report| panic!("{report}\n{text}"));
    compiled(loaded.model)
}

pub(crate) fn compiled(model: Model) -> Plan {
    let mut targets = TargetRegistry::default().begin();
    Plan::compile(1, Arc::new(model), &mut targets)
}

pub(crate) fn diff(before: &str, after: &str) -> PlanDiff {
    PlanDiff::compare(&plan(before), &plan(after))
}

/// The difference of two lists of routes in the same configuration.
pub(crate) fn route_diff(before: &str, after: &str) -> PlanDiff {
    diff(&around(before), &around(after))
}

/// A region in one line: hosts, paths, conditions and both answers.
pub(crate) fn line(region: &Region) -> String {
    let hosts: Vec<String> = region.hosts.iter().map(ToString::to_string).collect();
    let hosts = if region.is_every_host {
        "*".to_owned()
    } else {
        hosts.join(",")
    };
    let paths: Vec<String> = region.paths.iter().map(ToString::to_string).collect();
    let paths = if region.is_every_path {
        "*".to_owned()
    } else {
        paths.join(",")
    };
    let fields: Vec<String> = region
        .fields
        .iter()
        .map(|one| format!(" [{one}]"))
        .collect();
    format!(
        "{hosts} {paths}{}: {} -> {}",
        fields.concat(),
        region.before,
        region.after
    )
}

pub(crate) fn lines(diff: &PlanDiff) -> Vec<String> {
    diff.regions.iter().map(line).collect()
}

pub(crate) fn classes(diff: &PlanDiff) -> Vec<RiskClass> {
    let mut classes: Vec<RiskClass> = diff.risks.iter().map(|risk| risk.class).collect();
    classes.dedup();
    classes
}
