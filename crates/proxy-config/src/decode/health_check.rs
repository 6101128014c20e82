//! The `health-check` block of an upstream.

use super::block::Block;
use super::decoder::Decoder;
use super::field::{Found, Written};
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_health::{CheckTiming, Thresholds};
use proxy_model::registry::{health_check as spec, outlier_detection as outlier_spec};
use proxy_model::{HealthCheck, HealthCheckKind, HealthCheckType, OutlierDetection, Setting};
use std::time::Duration;

pub(super) fn health_check<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<HealthCheck> {
    let b = b.inner(d, &spec::HEALTH_CHECK)?;
    let kind = kind(d, &b);
    let profile = b.setting(d, &spec::PROFILE);
    let timing = profile.timing();
    let Thresholds { healthy, unhealthy } = timing.thresholds;
    let interval = b.setting(d, &spec::INTERVAL);
    let timeout = b.setting(d, &spec::TIMEOUT);
    let (interval, timeout) = times(d, interval, timeout, timing);
    let healthy_threshold = or_profile(b.setting(d, &spec::HEALTHY_THRESHOLD), healthy);
    let unhealthy_threshold = or_profile(b.setting(d, &spec::UNHEALTHY_THRESHOLD), unhealthy);
    let place = b.place(d);
    b.close(d);
    Some(HealthCheck {
        place,
        kind: kind?,
        profile,
        interval,
        timeout,
        healthy_threshold,
        unhealthy_threshold,
    })
}

/// Interval and time-out. If only one of them is written, the profile's value of the other is
/// limited to it; reports written ones of which the time-out is longer.
fn times(
    d: &mut Decoder<'_, '_>,
    interval: Setting<Duration>,
    timeout: Setting<Duration>,
    profile: CheckTiming,
) -> (Setting<Duration>, Setting<Duration>) {
    match (interval.place(), timeout.place()) {
        (None, None) => {
            let interval = Setting::defaulted(profile.interval);
            (interval, Setting::defaulted(profile.timeout))
        }
        (Some(_), None) => {
            let timeout = Setting::defaulted(profile.timeout.min(*interval));
            (interval, timeout)
        }
        (None, Some(_)) => {
            let interval = Setting::defaulted(profile.interval.max(*timeout));
            (interval, timeout)
        }
        (Some(_), Some(place)) => {
            if *timeout > *interval {
                let message = format!(
                    "the `timeout-secs` of {timeout:?} is longer than the `interval-secs` of {interval:?}: probes would overlap",
                    timeout = *timeout,
                    interval = *interval,
                );
                let help = "write a time-out of at most the interval";
                d.push(Diagnostic::new(DiagnosticCode::Conflict, place, message).help(help));
            }
            (interval, timeout)
        }
    }
}

/// The written value, else the profile's.
fn or_profile<T>(setting: Setting<T>, of_profile: T) -> Setting<T> {
    if setting.place().is_some() {
        setting
    } else {
        Setting::defaulted(of_profile)
    }
}

pub(super) fn outlier_detection<'t>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
) -> Option<OutlierDetection> {
    let b = b.inner(d, &outlier_spec::OUTLIER_DETECTION)?;
    let detection = OutlierDetection {
        place: b.place(d),
        consecutive_failures: b.setting(d, &outlier_spec::CONSECUTIVE_FAILURES),
        failure_percent: b.optional(d, &outlier_spec::FAILURE_PERCENT),
        min_requests: b.setting(d, &outlier_spec::MIN_REQUESTS),
        interval: b.setting(d, &outlier_spec::INTERVAL),
        base_ejection: b.setting(d, &outlier_spec::BASE_EJECTION),
        max_ejection: b.setting(d, &outlier_spec::MAX_EJECTION),
        max_ejected_percent: b.setting(d, &outlier_spec::MAX_EJECTED_PERCENT),
    };
    b.close(d);
    Some(detection)
}

/// `type "http" { … }`, or `type="http"` with its settings in the same block.
fn kind<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<HealthCheckKind> {
    let fields = b.take(spec::TYPE.path);
    if fields.is_empty() {
        missing_type(d, b);
    }
    let field = b.once(d, &fields)?;
    let (nodes, value) = match field.written {
        Written::Property(entry) => (Vec::new(), field.value(d, entry)),
        Written::Node(node) => (vec![(field.file, node)], None),
    };
    let settings = b.gathered(d, &spec::TYPE, nodes);
    let value = value.or_else(|| only_argument(d, &settings));
    let kind = value.and_then(|found| b.read(d, &spec::TYPE, "type", &found))?;
    let kind = match kind.value {
        HealthCheckType::Http => HealthCheckKind::Http {
            path: settings.setting(d, &spec::PATH),
            expected_status: settings.setting(d, &spec::EXPECTED_STATUS),
            host: settings.optional(d, &spec::HOST),
        },
        HealthCheckType::Tcp => HealthCheckKind::Tcp,
        HealthCheckType::Grpc => HealthCheckKind::Grpc {
            service: settings.optional(d, &spec::SERVICE),
        },
        HealthCheckType::Inference => HealthCheckKind::Inference {
            endpoint: settings.setting(d, &spec::ENDPOINT),
            expected_models: settings.list(d, &spec::EXPECTED_MODELS),
        },
    };
    settings.close(d);
    Some(kind)
}

/// Reports that there is no `type`; settings of a type show which one it would be.
fn missing_type<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) {
    let place = b.place(d);
    let message = format!("`type` is missing{}", b.within(d));
    let fault = Diagnostic::new(DiagnosticCode::MissingSetting, place, message);
    let fault = fault.label("needs `type`");
    let has = |paths: &[&'static str]| {
        let written = paths.iter().filter(|path| !b.take(path).is_empty());
        written.count() > 0
    };
    let http = has(&[spec::PATH.path, spec::EXPECTED_STATUS.path, spec::HOST.path]);
    let help = if http {
        "write `type \"http\" { path \"/health\" }`, with these settings in its block"
    } else if has(&[spec::SERVICE.path]) {
        "write `type \"grpc\" { service \"name\" }`"
    } else if has(&[spec::ENDPOINT.path, spec::EXPECTED_MODELS.path]) {
        "write `type \"inference\" { endpoint \"/v1/models\" }`, with these settings in its block"
    } else {
        "write `type \"http\" { path \"/health\" }`, or `type \"tcp\"`"
    };
    d.push(fault.help(help));
}

fn only_argument<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Found<'t>> {
    let arguments = b.arguments(d);
    for (_, place) in arguments.iter().skip(1) {
        d.fault(
            DiagnosticCode::UnexpectedValue,
            *place,
            "a health check has one `type`",
        );
    }
    let first = arguments.first().copied();
    if first.is_none() {
        let place = b.place(d);
        d.fault(DiagnosticCode::MissingValue, place, "`type` has no value");
    }
    first
}
