//! The decoder treats every setting as the registry describes it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

#[path = "support/document.rs"]
mod document;

use document::{in_unit, sample, with};
use proxy_config::{DiagnosticCode, parse};
use proxy_model::registry::{self, SettingSpec, Shape};
use proxy_model::{Origin, effective};

fn codes(text: &str) -> Vec<(DiagnosticCode, String)> {
    let faults = match parse(text, "x.kdl") {
        Ok(_) => Vec::new(),
        Err(report) => report.faults().to_vec(),
    };
    faults
        .into_iter()
        .map(|fault| (fault.code, fault.message))
        .collect()
}

/// Numbers at and just beyond both ends of the range, each with whether it is accepted.
fn ends(spec: &SettingSpec) -> Vec<(String, bool)> {
    let whole = |least: i128, greatest: i128| {
        let ends = [
            (least, true),
            (greatest, true),
            (least - 1, false),
            (greatest + 1, false),
        ];
        ends.map(|(number, inside)| (number.to_string(), inside))
            .to_vec()
    };
    match spec.shape {
        Shape::Integer {
            least, greatest, ..
        } => whole(least, greatest),
        Shape::Size { least, greatest } => whole(least.into(), greatest.into()),
        Shape::Time {
            least_ms,
            greatest_ms,
        } => {
            let in_unit = |millis| in_unit(spec, millis).parse::<i128>().unwrap();
            whole(in_unit(least_ms), in_unit(greatest_ms))
        }
        Shape::Decimal {
            least, greatest, ..
        } => vec![
            (format!("{least:?}"), true),
            (format!("{greatest:?}"), true),
            (format!("{:?}", least - 0.5), false),
            (format!("{:?}", greatest + 0.5), false),
        ],
        Shape::Flag
        | Shape::Choice(_)
        | Shape::Text { .. }
        | Shape::Pair { .. }
        | Shape::Block { .. } => Vec::new(),
    }
}

#[test]
fn the_ends_of_every_range_are_taken_and_nothing_beyond() {
    let mut tried = 0;
    for spec in registry::all() {
        for (number, inside) in ends(&spec) {
            let text = with(spec.path, &number);
            let name = format!("`{}`", spec.name());
            let out_of_range = codes(&text).into_iter().any(|(code, message)| {
                code == DiagnosticCode::OutOfRange && message.starts_with(&name)
            });
            assert_eq!(out_of_range, !inside, "{text}\n{:?}", codes(&text));
            tried += 1;
        }
    }
    assert!(tried > 100);
}

/// The path of a setting's value in the effective configuration when it differs from its own path.
fn in_force_as(path: &'static str) -> Option<&'static str> {
    match path {
        "agents.agent.transport.path" => Some("agents.agent.unix-socket"),
        // The kind of a check follows from the settings used.
        "schema-version"
        | "include"
        | "upstreams.upstream.health-check.type"
        | "agents.agent.transport" => None,
        "routes.route.policies.timeout-secs" => Some("routes.route.policies.timeouts.request-secs"),
        "routes.route.policies.response-headers.preset" => {
            Some("routes.route.policies.response-headers.set")
        }
        "upstreams.upstream.timeout-secs" => Some("upstreams.upstream.timeouts.request-secs"),
        "listeners.listener.tls.cert-file" => Some("listeners.listener.tls.certificate.cert-file"),
        "listeners.listener.tls.key-file" => Some("listeners.listener.tls.certificate.key-file"),
        "listeners.listener.tls.ocsp-file" => Some("listeners.listener.tls.certificate.ocsp-file"),
        // The tests in a configuration apply to no request.
        path if path == "tests" || path.starts_with("tests.") => None,
        path => Some(path),
    }
}

#[test]
fn every_written_setting_is_effective() {
    for spec in &registry::all() {
        let (Some(value), Some(path)) = (sample(spec), in_force_as(spec.path)) else {
            continue;
        };
        let value = match spec.path {
            "routes.route.upstream"
            | "routes.route.policies.shadow.upstream"
            | "listeners.listener.default-route" => "\"other\"".to_owned(),
            // A relay excludes other settings of its listener.
            "listeners.listener.protocol" => "\"http\"".to_owned(),
            _ => value,
        };
        let text = with(spec.path, &value);
        let loaded = parse(&text, "x.kdl").unwrap_or_else(|report| panic!("{text}\n{report}"));
        let effective = effective(&loaded.model);
        let written = effective
            .iter()
            .any(|setting| setting.row == path && setting.origin != Origin::Default);
        assert!(written, "{text}\n{effective:#?}");
    }
}

#[test]
fn omitted_settings_have_the_default_of_the_registry() {
    let text = "listeners { listener \"a\" { address \"127.0.0.1:1\" } }";
    let loaded = parse(text, "x.kdl").unwrap();
    for setting in effective(&loaded.model) {
        let spec = registry::all()
            .into_iter()
            .find(|spec| setting.row == spec.path);
        let Some(spec) = spec.filter(|_| setting.origin == Origin::Default) else {
            continue;
        };
        let registry::Presence::Default(default) = &spec.presence else {
            panic!("{} has no default", spec.path);
        };
        let value = setting.value.to_string();
        assert_eq!(default.trim_start_matches('#'), value, "{}", spec.path);
    }
}
