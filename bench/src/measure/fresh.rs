//! Memory use of fresh processes.

use crate::figure::{Figure, number};
use crate::measure::comparison::Comparison;
use crate::measure::rounds;
use crate::report::{Entry, Round};
use crate::servers::running::Running;
use crate::servers::running_servers::{self, CheckedServer};
use crate::servers::server::Server;
use proxy_load::command::{LoadProfile, Pacing, Protocol, ResponseSize, Sample, Span};
use proxy_load::meter;
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;
use xtask_kit::task_error::TaskError;

/// Measures the memory of idle connections, in a fresh process of each server.
pub(crate) fn rest(
    comparison: &mut Comparison<'_>,
    servers: &[Server],
    connections: u32,
) -> Result<Vec<Entry>, TaskError> {
    each(comparison, servers, |comparison, _, running| {
        let profile = resting(running, connections, comparison.effort.settle);
        let sample = match running_servers::reason(comparison.load_process.run(profile))? {
            Ok(sample) => sample,
            Err(why) => {
                return Ok(Round {
                    void: Some(why),
                    ..Round::default()
                });
            }
        };
        Ok(Round {
            void: sample.failure.clone(),
            figures: memory(&sample, connections),
            repeated: 0,
        })
    })
}

/// Measures the memory of a fresh process of each server, and of each route, once the memory of
/// loading the configuration has been returned.
#[expect(
    clippy::disallowed_methods,
    reason = "freed pages are returned after a time, and no event announces it"
)]
pub(crate) fn weigh(
    comparison: &mut Comparison<'_>,
    servers: &[Server],
) -> Result<Vec<Entry>, TaskError> {
    let mut first: Option<(u32, u64)> = None;
    each(comparison, servers, |comparison, server, running| {
        thread::sleep(comparison.effort.settle);
        let bytes = meter::memory_bytes(&running.family);
        let routes = server.setup.routes;
        let (first_routes, first_bytes) = *first.get_or_insert((routes, bytes));
        let mut figures = BTreeMap::from([(Figure::RssBytes, number(bytes))]);
        let more = routes.saturating_sub(first_routes);
        if more > 0 {
            let added = number(bytes) - number(first_bytes);
            figures.insert(Figure::RouteBytes, added / f64::from(more));
        }
        Ok(Round {
            figures,
            ..Round::default()
        })
    })
}

/// Runs all rounds of all servers, each with a fresh process.
fn each(
    comparison: &mut Comparison<'_>,
    servers: &[Server],
    mut measure: impl FnMut(&mut Comparison<'_>, &Server, &Running) -> Result<Round, TaskError>,
) -> Result<Vec<Entry>, TaskError> {
    comparison.running.clear();
    let mut entries: Vec<Entry> = servers
        .iter()
        .map(|server| Entry::new(&server.name))
        .collect();
    for _ in 0..comparison.effort.fresh_rounds {
        for (server, entry) in servers.iter().zip(&mut entries) {
            if entry.unsupported.is_some() {
                continue;
            }
            let checked =
                CheckedServer::enter(comparison.environment, &mut comparison.load_process, server)?;
            match checked.ready(Protocol::Plain) {
                Ok(running) => entry.rounds.push(measure(comparison, server, running)?),
                Err(why) => entry.unsupported = Some(why.to_owned()),
            }
        }
    }
    Ok(entries)
}

fn resting(running: &Running, connections: u32, settle: Duration) -> LoadProfile {
    let small = ResponseSize::Small;
    let paths = vec![format!("/{}", small.letter())];
    LoadProfile {
        connections,
        pacing: Pacing::Once,
        span: Span::Time(settle),
        spin: false,
        watch: running.family.clone(),
        ..LoadProfile::get(running.ports.clients, paths, small)
    }
}

fn memory(sample: &Sample, connections: u32) -> BTreeMap<Figure, f64> {
    let before = number(sample.memory_before_bytes);
    let after = number(sample.memory_after_bytes);
    let mut figures = rounds::figures(sample);
    figures.insert(Figure::RssBytes, before);
    figures.insert(
        Figure::ConnectionBytes,
        (after - before) / f64::from(connections),
    );
    figures
}
