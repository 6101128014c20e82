//! The proxy without clients: nothing is in use, and all of it can be used again.
#![expect(clippy::disallowed_methods, reason = "tests wait until a deadline")]

use super::configuration::MAX_IN_FLIGHT;
use super::exchange::ROUTES;
use super::target::{Condition, Target};
use super::world::World;
use proxy_testkit::{EVENT_TIMEOUT, Gate, Proxyd, RawClient, get};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Pause between two attempts.
const INTERVAL: Duration = Duration::from_millis(50);

/// Connections of which each worker has some, most likely.
const CONNECTIONS: usize = 16;

/// Number of equal readings of a process's files after which they are stable.
const STABLE_READINGS: usize = 10;

/// Gauges that are 0 without requests, under any labels.
const IDLE_GAUGES: [&str; 6] = [
    "proxy_requests_in_flight",
    "proxy_active_requests",
    "proxy_requests_queued",
    "proxy_open_connections",
    "proxy_upstream_target_active_requests",
    "proxy_agent_queue_depth",
];

/// Number of open files of the process, by kind.
pub(crate) type Files = BTreeMap<String, usize>;

/// Waits until every route is served again, over enough connections for all workers.
#[track_caller]
pub(crate) fn wait_until_served(proxyd: &Proxyd) {
    for route in ROUTES {
        let request = get(route.path(false), &[("X-Correlation-Id", "get-well")]);
        wait("every route is served", || {
            for _ in 0..CONNECTIONS {
                let response = proxyd.connect().ask(&request);
                // A limit is not a failure.
                if response.status != 200 && response.status != 429 {
                    return Err(format!("{route:?}: {}", response.text()));
                }
            }
            Ok(())
        });
    }
}

/// Waits until nothing is in use.
#[track_caller]
pub(crate) fn wait_until_idle(proxyd: &Proxyd) {
    wait("no permit is in use", || {
        let busy = [busy_gauges(proxyd), used_limits(proxyd)].concat();
        busy.is_empty().then_some(()).ok_or(busy.join(", "))
    });
}

/// Waits until the files are at most those `before`, and returns them.
#[track_caller]
pub(crate) fn wait_for_files(proxyd: &Proxyd, before: &Files) -> Files {
    wait("no descriptor is left open", || {
        let files = proxyd.files_by_kind();
        let more = |(kind, count): &(&String, &usize)| {
            before.get(*kind).is_none_or(|before| before < count)
        };
        let more: Vec<_> = files.iter().filter(more).collect();
        if more.is_empty() {
            Ok(files)
        } else {
            Err(format!("{more:?}, before {before:?}"))
        }
    })
}

/// Waits until pooled connections are closed and the files of the process were equal in ten
/// readings, and returns them. In between, health checks and DNS look-ups open their own sockets.
pub(crate) fn files_without_pool(proxyd: &Proxyd) -> Files {
    let mut seen: Vec<(Files, usize)> = Vec::new();
    wait("pooled connections are closed", || {
        let page = admin(proxyd, "/metrics");
        let open =
            samples(&page, "proxy_connection_pool_size").filter(|line| !line.ends_with(" 0"));
        let open: Vec<_> = open.collect();
        if !open.is_empty() {
            seen.clear();
            return Err(format!("{open:?}"));
        }
        let files = proxyd.files_by_kind();
        let place = seen.iter().position(|(known, _)| *known == files);
        let place = place.unwrap_or_else(|| {
            seen.push((files.clone(), 0));
            seen.len() - 1
        });
        seen[place].1 += 1;
        if seen[place].1 < STABLE_READINGS {
            return Err(format!("{seen:?}"));
        }
        Ok(files)
    })
}

/// Waits until as many requests as the limits allow are at their targets at once.
#[track_caller]
pub(crate) fn take_all_permits(proxyd: &Proxyd, world: &World) {
    let arrived = || world.app.iter().map(Target::arrived).sum::<usize>();
    let request = get("/app", &[("X-Correlation-Id", "get-permit")]);
    wait("every permit can be taken", || {
        set_all(world, Condition::Holding);
        let expected = arrived() + MAX_IN_FLIGHT;
        let mut clients: Vec<RawClient> = (0..MAX_IN_FLIGHT).map(|_| proxyd.connect()).collect();
        for client in &mut clients {
            client.send(&request);
        }
        // Less than the time after which the targets count as failed.
        for _ in 0..14 {
            if arrived() < expected {
                Gate::new().opens_within(INTERVAL);
            }
        }
        let missing = expected.saturating_sub(arrived());
        set_all(world, Condition::Well);
        let statuses: Vec<u16> = clients
            .iter_mut()
            .map(|client| client.response().status)
            .collect();
        if missing == 0 && statuses.iter().all(|status| *status == 200) {
            Ok(())
        } else {
            Err(format!(
                "{missing} of {MAX_IN_FLIGHT} did not arrive; {statuses:?}"
            ))
        }
    });
}

fn set_all(world: &World, condition: Condition) {
    for target in &world.app {
        target.set(condition);
    }
}

/// Samples of gauges that are not 0.
fn busy_gauges(proxyd: &Proxyd) -> Vec<String> {
    let page = admin(proxyd, "/metrics");
    let busy = |name: &&str| {
        let samples = samples(&page, name);
        let busy = samples.filter(|line| !line.ends_with(" 0"));
        busy.map(str::to_owned).collect::<Vec<_>>()
    };
    IDLE_GAUGES.iter().flat_map(busy).collect()
}

/// Limits of which a process at rest uses something.
const USED_AT_REST: [&str; 2] = ["max-idle-connections-per-upstream", "max-memory-bytes"];

/// Limits with something in use.
fn used_limits(proxyd: &Proxyd) -> Vec<String> {
    let document: Value = serde_json::from_str(&admin(proxyd, "/admin/stats")).unwrap();
    let limits = document["limits"].as_object().unwrap();
    let used = limits
        .iter()
        .filter(|(name, _)| !USED_AT_REST.contains(&name.as_str()))
        .filter(|(_, limit)| limit["current"].as_u64().is_some_and(|used| used > 0));
    used.map(|(name, limit)| format!("{name}: {limit}"))
        .collect()
}

/// The samples of a metric; there are some.
fn samples<'p>(page: &'p str, name: &str) -> impl Iterator<Item = &'p str> {
    let is_sample = |line: &&str| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
    };
    let found: Vec<&str> = page.lines().filter(is_sample).collect();
    assert!(!found.is_empty(), "no {name} in:\n{page}");
    found.into_iter()
}

/// A page of the admin interface.
pub(crate) fn admin(proxyd: &Proxyd, path: &str) -> String {
    let mut client = RawClient::connect(proxyd.admin_address());
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.ask(request).text()
}

/// Attempts until the deadline of tests.
#[track_caller]
fn wait<T>(what: &str, mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let never = Gate::new();
    let mut last = String::new();
    let begun = Instant::now();
    while begun.elapsed() < EVENT_TIMEOUT {
        match attempt() {
            Ok(value) => return value,
            Err(error) => last = error,
        }
        never.opens_within(INTERVAL);
    }
    panic!("not in time: {what}; {last}");
}
