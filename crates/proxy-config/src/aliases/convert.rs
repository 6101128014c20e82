//! Conversions of an alias's value to the value of our setting.

use super::alias::{Argument, Converted, Written};
use crate::kdl::Value;
use std::net::SocketAddr;

/// Keeps the entries as written.
pub(super) fn same(_: &Written<'_>) -> Converted {
    Converted::Same
}

/// Accepts any value: the setting states our fixed behaviour.
pub(super) fn implied(_: &Written<'_>) -> Converted {
    Converted::Implied
}

/// Accepts `1.0`, the version of the other system's notation.
pub(super) fn schema_version(written: &Written<'_>) -> Converted {
    match written.value() {
        Some(Value::Text(text)) if **text == *"1.0" || **text == *"1" => {
            Converted::Arguments(vec![Argument::plain(Value::Integer(1))])
        }
        _ => Converted::Ours,
    }
}

/// A switch that may be written as text.
pub(super) fn flag(written: &Written<'_>) -> Converted {
    match (written.value(), written.flag()) {
        (Some(Value::Text(_)), Some(flag)) => {
            Converted::Arguments(vec![Argument::plain(Value::Flag(flag))])
        }
        _ => Converted::Same,
    }
}

/// A time in seconds, as a number or as text with a unit.
pub(super) fn seconds(written: &Written<'_>) -> Converted {
    let Some(Value::Text(text)) = written.value() else {
        return Converted::Same;
    };
    match duration_ms(text) {
        Some(ms) if ms % 1_000 == 0 => {
            Converted::Arguments(vec![Argument::plain(Value::Integer(ms / 1_000))])
        }
        _ => Converted::Refused("write whole seconds as a number"),
    }
}

/// A time in milliseconds, as a number or as text with a unit.
pub(super) fn milliseconds(written: &Written<'_>) -> Converted {
    let Some(Value::Text(text)) = written.value() else {
        return Converted::Same;
    };
    match duration_ms(text) {
        Some(ms) => Converted::Arguments(vec![Argument::plain(Value::Integer(ms))]),
        None => Converted::Refused("write milliseconds as a number"),
    }
}

fn duration_ms(text: &str) -> Option<i128> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let per = match unit.trim() {
        "ms" => 1,
        "s" | "sec" | "secs" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<i128>().ok()?.checked_mul(per)
}

/// A percentage, as a number or as text.
pub(super) fn percent(written: &Written<'_>) -> Converted {
    match written.value() {
        Some(Value::Text(text)) => match text.parse::<f64>() {
            Ok(number) => Converted::Arguments(vec![Argument::plain(Value::Decimal(number))]),
            Err(_) => Converted::Refused("write a number from 0 to 100"),
        },
        _ => Converted::Same,
    }
}

/// The process never detaches itself.
pub(super) fn daemon(written: &Written<'_>) -> Converted {
    match written.flag() {
        Some(false) => Converted::Implied,
        _ => Converted::Refused(
            "leave it out: the process stays in the foreground, and the service manager starts it",
        ),
    }
}

pub(super) fn auto_reload(written: &Written<'_>) -> Converted {
    match written.flag() {
        Some(false) => Converted::Implied,
        _ => Converted::Refused("leave it out and reload with SIGHUP, after `proxyd --test`"),
    }
}

/// Converts the address of a metrics server to the admin interface's: on loopback, because that
/// interface has more than metrics.
pub(super) fn metrics_address(written: &Written<'_>) -> Converted {
    let own = (written.stated)("admin.address");
    if own.iter().any(|it| it == written.arguments) {
        return Converted::Implied;
    }
    // The access to the interface is the file's own choice, which an alias never changes.
    let limits = ["admin.address", "admin.token-file", "admin.unix-socket"];
    if limits.iter().any(|path| written.has(path)) {
        return Converted::Refused(
            "leave it out: the admin interface, which has the metrics, listens where `admin { address }` \
             says",
        );
    }
    let Some(Value::Text(text)) = written.value() else {
        return Converted::Same;
    };
    match text.parse::<SocketAddr>() {
        Ok(address) if !address.ip().is_loopback() => {
            let local = format!("127.0.0.1:{}", address.port());
            Converted::Arguments(vec![Argument::text(&local)])
        }
        _ => Converted::Same,
    }
}

pub(super) fn metrics_enabled(written: &Written<'_>) -> Converted {
    match written.flag() {
        Some(true) => Converted::Implied,
        _ => Converted::Refused(
            "leave it out: metrics are part of the admin interface; `admin { address \"off\" }` takes \
             both away",
        ),
    }
}

pub(super) fn metrics_path(written: &Written<'_>) -> Converted {
    match written.value() {
        Some(Value::Text(text)) if **text == *"/metrics" => Converted::Implied,
        _ => Converted::Refused(
            "leave it out: the admin interface has `/metrics`; for another path, write a route with \
             `builtin-handler \"metrics\"`",
        ),
    }
}

pub(super) fn high_cardinality(written: &Written<'_>) -> Converted {
    match written.flag() {
        Some(false) => Converted::Implied,
        _ => Converted::Refused("leave it out: the labels of metrics are fixed"),
    }
}

pub(super) fn log_format(written: &Written<'_>) -> Converted {
    match written.word().as_deref() {
        Some("json") => Converted::Implied,
        _ => Converted::Refused("leave it out: records of the error log are always JSON"),
    }
}

/// The level of the error log, unless another one is written for it.
pub(super) fn error_level(written: &Written<'_>) -> Converted {
    if written.has("observability.logging.level") || written.has("observability.error-log.level") {
        Converted::Refused("there is one error log with one level: keep `logging { level }`")
    } else {
        Converted::Same
    }
}

pub(super) fn true_only(written: &Written<'_>) -> Converted {
    match written.flag() {
        Some(true) => Converted::Implied,
        _ => Converted::Refused("leave it out: there is no switch for it"),
    }
}

pub(super) fn false_only(written: &Written<'_>) -> Converted {
    match written.flag() {
        Some(false) => Converted::Implied,
        _ => Converted::Refused("leave it out: it is not offered"),
    }
}

pub(super) fn tracing(written: &Written<'_>) -> Converted {
    let enabled = (written.stated)("observability.tracing.enabled");
    let is_off = |entries: &Vec<Argument>| match entries.as_slice() {
        [Argument { name: None, value }] => *value == Value::Flag(false),
        _ => false,
    };
    if enabled.iter().any(is_off) {
        Converted::Implied
    } else {
        Converted::Refused(
            "write `otlp { endpoint \"http://collector:4318\" }` for spans, and `trace-context { begin #true; \
             sample-percent 1 }` for traces that begin here",
        )
    }
}

/// `h2` becomes HTTP over TLS, with the protocol agreed by ALPN.
pub(super) fn listener_protocol(written: &Written<'_>) -> Converted {
    match written.word().as_deref() {
        Some("h2" | "http2") => Converted::Arguments(vec![Argument::text("https")]),
        Some("h3" | "http3" | "quic") => {
            Converted::Refused("HTTP/3 is not offered: write `protocol \"https\"`")
        }
        _ => Converted::Ours,
    }
}

pub(super) fn tls_version(written: &Written<'_>) -> Converted {
    let version = match written.word().as_deref() {
        Some("tls1.2" | "tlsv1.2" | "tls_1.2") => "1.2",
        Some("tls1.3" | "tlsv1.3" | "tls_1.3") => "1.3",
        Some("1.0" | "1.1" | "tls1.0" | "tls1.1" | "tlsv1.0" | "tlsv1.1") => {
            return Converted::Refused("TLS 1.0 and 1.1 are not offered: write `\"1.2\"`");
        }
        _ => return Converted::Ours,
    };
    Converted::Arguments(vec![Argument::text(version)])
}

/// Converts a switch to a mode of `client-auth`.
pub(super) fn client_auth(written: &Written<'_>) -> Converted {
    match written.flag() {
        Some(true) => Converted::Arguments(vec![Argument::text("required")]),
        Some(false) => Converted::Implied,
        None => Converted::Ours,
    }
}

pub(super) fn ocsp_stapling(written: &Written<'_>) -> Converted {
    match written.flag() {
        Some(false) => Converted::Implied,
        _ => Converted::Refused(
            "leave it out, or write `ocsp-file` with a response that a timer fetches: the proxy itself \
             asks no authority",
        ),
    }
}

pub(super) fn builtin_handler(written: &Written<'_>) -> Converted {
    match written.word().as_deref() {
        Some("config" | "upstreams") => Converted::Refused(
            "leave the route out: the admin interface has `/admin/upstreams`, `/admin/routes` and \
             `/status`",
        ),
        Some("cache_purge" | "cache_stats") => Converted::Refused(
            "leave the route out: the admin interface has `/admin/cache` and `/admin/cache/purge`",
        ),
        _ => Converted::Ours,
    }
}

/// A route's mode for agents that fail; here each agent has its own.
pub(super) fn failure_mode(written: &Written<'_>) -> Converted {
    let agents = (written.stated)("agents").into_iter().flatten();
    let mut modes = agents.map(|agent| {
        let mode = written.failure_modes.get(agent.as_text()?);
        mode.cloned()
    });
    let word = written.word();
    if !written.has("filters") && modes.all(|mode| mode == word) {
        Converted::Implied
    } else {
        Converted::Refused(
            "leave it out, and write `failure-mode` in each agent of the route: it is set there",
        )
    }
}

/// Converts the number of all attempts to `attempts`, which counts only the further ones.
pub(super) fn max_attempts(written: &Written<'_>) -> Converted {
    match written.value() {
        Some(Value::Integer(all)) if *all >= 1 => {
            Converted::Arguments(vec![Argument::plain(Value::Integer(all - 1))])
        }
        _ => Converted::Refused("write `retry { attempts 2 }` for two retries"),
    }
}

/// Statuses that cause a retry, in addition to failed connections.
pub(super) fn retry_statuses(written: &Written<'_>) -> Converted {
    let mut on = vec![Argument::text("connect-failure"), Argument::text("reset")];
    for argument in written.arguments {
        let Value::Integer(status @ 502..=504) = &argument.value else {
            return Converted::Refused(
                "leave the others out: requests are sent again after 502, 503 and 504 only",
            );
        };
        on.push(Argument::text(&status.to_string()));
    }
    Converted::Arguments(on)
}

pub(super) fn websocket(written: &Written<'_>) -> Converted {
    match written.flag() {
        _ if written.has_block => Converted::Ours,
        Some(true) => Converted::Implied,
        _ => Converted::Refused(
            "leave it out: upgrades pass on every route; a route with `header \"Upgrade\"` and \
             `respond 403` refuses them",
        ),
    }
}

pub(super) fn waf_enabled(written: &Written<'_>) -> Converted {
    match written.flag() {
        Some(false) => Converted::Implied,
        _ => Converted::Refused("name a WAF among the `agents` of the route"),
    }
}

/// Converts the switch for compressing a folder's files, which is a policy of the route here.
pub(super) fn compress(written: &Written<'_>) -> Converted {
    match written.flag() {
        Some(true) => Converted::Arguments(Vec::new()),
        Some(false) => Converted::Implied,
        None => Converted::Refused("write `policies { compression }`"),
    }
}

pub(super) fn cache_control(written: &Written<'_>) -> Converted {
    let mut arguments = vec![Argument::text("Cache-Control")];
    arguments.extend_from_slice(written.arguments);
    Converted::Arguments(arguments)
}

pub(super) fn service_type(written: &Written<'_>) -> Converted {
    match written.word().as_deref() {
        Some("inference") => {
            Converted::Refused("leave it out: routes to model servers are routes like others")
        }
        _ => Converted::Ours,
    }
}

pub(super) fn load_balancing(written: &Written<'_>) -> Converted {
    if written.has_block {
        return Converted::Ours;
    }
    let word = match written.word().as_deref() {
        Some("weighted_round_robin") => "weighted",
        Some("roundrobin") => "round_robin",
        Some("leastconnections" | "weighted_least_connections" | "weighted_least_conn" | "wlc") => {
            "least_connections"
        }
        Some("iphash") => "ip_hash",
        Some("power_of_two_choices" | "p2c") => "random_two",
        Some("peakewma" | "ewma") => "peak_ewma",
        Some("sticky_session" | "stickysession") => "sticky",
        Some("random") => {
            return Converted::Refused(
                "write `random_two`: of two targets the one with less to do",
            );
        }
        Some("consistent_hash" | "consistenthash" | "maglev") => {
            return Converted::Refused(
                "write `ip_hash` for clients, or `sticky` for sessions: both are stable when targets change",
            );
        }
        Some("adaptive" | "least_tokens_queued" | "leasttokensqueued" | "least_tokens") => {
            return Converted::Refused(
                "write `peak_ewma`: it follows the response times of targets",
            );
        }
        Some(
            "locality_aware"
            | "localityaware"
            | "locality"
            | "deterministic_subset"
            | "subset"
            | "subsetting",
        ) => {
            return Converted::Refused(
                "write `least_connections`, and a group of targets for each place",
            );
        }
        _ => return Converted::Ours,
    };
    Converted::Arguments(vec![Argument::text(word)])
}

/// The time between two writes, which `read-secs` bounds too.
pub(super) fn write_secs(written: &Written<'_>) -> Converted {
    let same = |path: &str| {
        (written.stated)(path)
            .iter()
            .any(|it| it == written.arguments)
    };
    if same("timeouts.read-secs") || same("timeouts.read") {
        Converted::Implied
    } else {
        Converted::Refused(
            "leave it out: `read-secs` bounds the time between two reads and between two writes",
        )
    }
}

pub(super) fn skip_verify(written: &Written<'_>) -> Converted {
    match written.flag() {
        Some(false) => Converted::Implied,
        _ => Converted::Refused(
            "write `ca-file` with the authority or the certificate itself, or `verify #false` with `pin-sha256`",
        ),
    }
}

pub(super) fn single_success(written: &Written<'_>) -> Converted {
    match written.value() {
        Some(Value::Integer(1)) => Converted::Implied,
        _ => Converted::Refused("leave it out: one success closes an agent's breaker"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_a_unit_are_milliseconds() {
        for (text, ms) in [
            ("100ms", Some(100)),
            ("30s", Some(30_000)),
            ("2m", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("5", None),
            ("5 weeks", None),
            ("", None),
        ] {
            assert_eq!(duration_ms(text), ms, "{text}");
        }
    }
}
