//! Checks of limits, kernel settings and the clock.

use super::finding::Finding;
use proxy_model::{BindAddress, Model, RESERVED_DESCRIPTORS};
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::time::{Duration, SystemTime};

/// Kernel limit on the queue of connections to accept.
const MAX_BACKLOG: &str = "/proc/sys/net/core/somaxconn";

/// Kernel setting of the port range of outgoing connections, such as `32768 60999`.
const OUTGOING_PORTS: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Time since 1970 of 2026-01-01. An earlier clock is wrong.
const EARLIEST_TIME: Duration = Duration::from_hours(490_896);

#[expect(
    clippy::disallowed_methods,
    reason = "the command reads the clock once"
)]
pub(super) fn check(model: &Model) -> Vec<Finding> {
    let mut findings = vec![
        open_files(model, getrlimit(Resource::Nofile).maximum),
        memory(model),
        clock(SystemTime::now()),
    ];
    findings.extend(backlogs(model, number(MAX_BACKLOG)));
    findings.extend(outgoing_ports(model, outgoing_port_range()));
    findings
}

/// Checks the hard limit on open files, to which `proxyd` raises its soft one. Each client connection may need a second one, to a target.
fn open_files(model: &Model, allowed: Option<u64>) -> Finding {
    let connections = u64::from(*model.limits.max_total_connections);
    let needed = connections
        .saturating_mul(2)
        .saturating_add(RESERVED_DESCRIPTORS);
    match allowed {
        Some(allowed) if allowed < needed => Finding::warning(
            "open files",
            format!(
                "{allowed} are allowed; `max-total-connections` {connections}, as many connections to \
                 targets and {RESERVED_DESCRIPTORS} of its own need {needed}"
            ),
            format!("set LimitNOFILE={needed} in the unit, or `ulimit -n {needed}` in the shell"),
        ),
        Some(allowed) => Finding::ok("open files", format!("{allowed} allowed, {needed} needed")),
        None => Finding::ok("open files", "no limit"),
    }
}

fn memory(model: &Model) -> Finding {
    let worst_case = proxy_server::worst_case(model);
    let total = mebibytes(worst_case.total_bytes());
    match worst_case.exceeded_limit() {
        Some(limit) => Finding::warning(
            "memory",
            format!(
                "the configuration can take {total} MiB at the worst, more than the limit of {} MiB: \
                 connections and requests are refused above it",
                mebibytes(limit)
            ),
            "lower `limits`; `proxyd --test --verbose` shows the sum by its terms",
        ),
        None => Finding::ok("memory", format!("{total} MiB at the worst")),
    }
}

fn mebibytes(bytes: u64) -> u64 {
    bytes >> 20
}

fn clock(now: SystemTime) -> Finding {
    let earliest = SystemTime::UNIX_EPOCH + EARLIEST_TIME;
    if now < earliest {
        return Finding::fault(
            "clock",
            "before 2026: certificates are not yet valid",
            "set it, and run a time service such as systemd-timesyncd or chrony",
        );
    }
    Finding::ok("clock", "after the date of this program")
}

/// Checks the listeners' queues. The kernel silently shortens a queue above its limit.
fn backlogs(model: &Model, longest: Option<u64>) -> Vec<Finding> {
    let Some(longest) = longest else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for listener in &model.listeners {
        let backlog = u64::from(*listener.backlog);
        if longest < backlog {
            findings.push(Finding::warning(
                format!("listener {}", listener.name),
                format!("`backlog` {backlog} is cut to {longest} by net.core.somaxconn"),
                format!(
                    "sysctl -w net.core.somaxconn={backlog}, and the setting in /etc/sysctl.d for the next boot"
                ),
            ));
        }
    }
    findings
}

/// Checks for listeners with a port in the range of outgoing connections, one of which may have
/// taken it at the start.
fn outgoing_ports(model: &Model, range: Option<(u16, u16)>) -> Vec<Finding> {
    let Some((first, last)) = range else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for listener in &model.listeners {
        let BindAddress::Tcp(address) = &*listener.address else {
            continue;
        };
        let port = address.port();
        if (first..=last).contains(&port) {
            findings.push(Finding::warning(
                format!("listener {}", listener.name),
                format!("outgoing connections may take port {port}, one of {first} to {last}"),
                format!("use another port, or add {port} to net.ipv4.ip_local_reserved_ports"),
            ));
        }
    }
    findings
}

fn number(file: &str) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn outgoing_port_range() -> Option<(u16, u16)> {
    let text = fs::read_to_string(OUTGOING_PORTS).ok()?;
    let mut ports = text.split_whitespace().map(str::parse);
    Some((ports.next()?.ok()?, ports.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity;
    use super::*;

    fn model(text: &str) -> Model {
        let base = "upstreams { upstream \"u\" { target \"127.0.0.1:1\" } }\n";
        let loaded = proxy_config::parse(&format!("{base}{text}"), "test.kdl").unwrap();
        loaded.model
    }

    #[test]
    fn a_limit_below_twice_the_connections_is_a_warning() {
        let model = model(
            "listeners { listener \"l\" { address \"127.0.0.1:0\" } }\n\
             limits { max-total-connections 1000 }",
        );

        let low = open_files(&model, Some(2099));

        assert_eq!(low.severity, Severity::Warning);
        assert!(low.remedy.unwrap().contains("LimitNOFILE=2100"));
        assert_eq!(open_files(&model, Some(2100)).severity, Severity::Ok);
        assert_eq!(open_files(&model, None).severity, Severity::Ok);
    }

    #[test]
    fn a_hundred_descriptors_are_reserved_for_few_connections_too() {
        let model = model("limits { max-total-connections 30 }");

        let low = open_files(&model, Some(159));

        assert_eq!(low.severity, Severity::Warning);
        assert!(low.state.contains("100 of its own need 160"));
        assert_eq!(open_files(&model, Some(160)).severity, Severity::Ok);
    }

    #[test]
    fn a_port_that_an_outgoing_connection_may_take_is_a_warning() {
        let model = model("listeners { listener \"l\" { address \"127.0.0.1:32768\" } }");

        assert_eq!(outgoing_ports(&model, Some((32_768, 60_999))).len(), 1);
        assert_eq!(outgoing_ports(&model, Some((32_769, 60_999))).len(), 0);
        assert_eq!(outgoing_ports(&model, None).len(), 0);
    }

    #[test]
    fn a_queue_longer_than_the_kernels_is_a_warning() {
        let model = model("listeners { listener \"l\" { address \"127.0.0.1:0\"; backlog 512 } }");

        assert_eq!(backlogs(&model, Some(511)).len(), 1);
        assert_eq!(backlogs(&model, Some(512)).len(), 0);
    }

    #[test]
    fn a_clock_of_1970_is_a_fault() {
        assert_eq!(clock(SystemTime::UNIX_EPOCH).severity, Severity::Fault);
        let earliest = SystemTime::UNIX_EPOCH + EARLIEST_TIME;
        assert_eq!(clock(earliest).severity, Severity::Ok);
    }
}
