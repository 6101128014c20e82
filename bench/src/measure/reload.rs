//! Reloads under load: their duration, and response times meanwhile.

use crate::cases::Load;
use crate::effort::Sampling;
use crate::figure::{Figure, number};
use crate::measure::comparison::Comparison;
use crate::measure::rounds;
use crate::report::{Entry, Round};
use crate::servers::running::Running;
use crate::servers::running_servers::{self, CheckedServer};
use crate::servers::server::Server;
use crate::statistics;
use proxy_load::clock::{self, Stopwatch};
use proxy_load::command::Span;
use proxy_testkit::RawClient;
use rustix::process::Signal;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use xtask_kit::task_error::TaskError;

/// Interval of polling for the end of a reload.
const TICK: Duration = Duration::from_millis(5);
const RELOAD_TIMEOUT: Duration = Duration::from_secs(20);

/// Measures reloads while requests arrive, in every round.
pub(crate) fn repeat(
    comparison: &mut Comparison<'_>,
    servers: &[Server],
    load: &Load,
) -> Result<Vec<Entry>, TaskError> {
    comparison.running.clear();
    let mut entries = Vec::new();
    for server in servers {
        let checked =
            CheckedServer::enter(comparison.environment, &mut comparison.load_process, server)?;
        let running = match checked.ready(load.protocol) {
            Ok(running) => running,
            Err(why) => {
                entries.push(Entry::unsupported(&server.name, why.to_owned()));
                continue;
            }
        };
        let mut entry = Entry::new(&server.name);
        for _ in 0..comparison.effort.fresh_rounds {
            match running_servers::reason(round(comparison, server, running, load))? {
                Ok(round) => entry.rounds.push(round),
                Err(why) => entry.unsupported = Some(why),
            }
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn round(
    comparison: &mut Comparison<'_>,
    server: &Server,
    running: &Running,
    load: &Load,
) -> Result<Round, TaskError> {
    let mut profile = rounds::profile(load, &server.setup, running.ports.clients, &running.family);
    let Sampling { warm, span, .. } = comparison.effort.usual;
    profile.warm = warm;
    profile.span = Span::Time(span);
    comparison.load_process.begin(profile)?;
    let watch = Stopwatch::start();
    clock::pause(warm);
    let mut times = Vec::new();
    let mut reloading = Ok(());
    while reloading.is_ok() && watch.elapsed() < warm + span {
        reloading = once(running).map(|time| times.push(time));
    }
    // Read even if a reload failed: otherwise the next load would get this one's result.
    let sample = comparison.load_process.finish();
    reloading?;
    let sample = sample?;
    let millis = times.iter().map(|time| time.as_secs_f64() * 1e3);
    let mut figures = rounds::figures(&sample);
    if let Some(spread) = statistics::spread(millis) {
        figures.insert(Figure::ReloadMillis, spread.greatest);
    }
    Ok(Round {
        void: rounds::void(&sample, None),
        figures,
        repeated: 0,
    })
}

/// Reloads once. Returns the time from the signal to the end.
fn once(running: &Running) -> Result<Duration, TaskError> {
    let before = reloads(running)?;
    running.signal(Signal::HUP)?;
    let watch = Stopwatch::start();
    while reloads(running)? <= before {
        if watch.elapsed() > RELOAD_TIMEOUT {
            return Err(TaskError::Failed("it does not reload".to_owned()));
        }
        clock::pause(TICK);
    }
    Ok(watch.elapsed())
}

/// Returns the number of reloads that the proxy reports.
fn reloads(running: &Running) -> Result<f64, TaskError> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, running.ports.admin));
    let answer = RawClient::try_connect(address).map(|mut client| {
        client.set_response_timeout(RELOAD_TIMEOUT);
        client.ask("GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")
    });
    let answer = answer.map_err(|cause| {
        TaskError::Failed(format!("its admin interface does not answer: {cause}"))
    })?;
    let status: Option<Value> = serde_json::from_slice(&answer.body).ok();
    let count = status.and_then(|status| status.get("config_reload_count")?.as_u64());
    count
        .map(number)
        .ok_or_else(|| TaskError::Failed("its /status has no config_reload_count".to_owned()))
}
