//! Samples of running proxies in rotation, so that changes over time affect all of them equally.

use crate::cases::Load;
use crate::effort::Sampling;
use crate::figure::{Figure, number};
use crate::measure::comparison::Comparison;
use crate::report::{Entry, Round};
use crate::servers::running_servers::{self, CheckedServer};
use crate::servers::server::{RouteKind, Server, Setup};
use proxy_load::command::{LoadProfile, Sample, Span};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::time::Duration;
use xtask_kit::task_error::TaskError;

/// Minimum use of its cores by a proxy for a valid sample.
const MIN_CORE_SHARE: f64 = 0.9;
const ACCESS_LOG: &str = "access.log";

/// Takes the samples of all servers in all rounds.
pub(crate) fn take(
    comparison: &mut Comparison<'_>,
    servers: &[Server],
    load: &Load,
    turns: Sampling,
) -> Result<Vec<Entry>, TaskError> {
    let Comparison {
        environment,
        load_process,
        running,
        ..
    } = comparison;
    running.set(environment, load_process, servers)?;
    let entry = |checked: &CheckedServer| {
        let name = &checked.server.name;
        match checked.ready(load.protocol) {
            Ok(_) => Entry::new(name),
            Err(why) => Entry::unsupported(name, why.to_owned()),
        }
    };
    let mut entries: Vec<Entry> = running.servers().iter().map(entry).collect();
    for round in 0..turns.rounds {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for place in order {
            let Some(entry) = entries.get_mut(place) else {
                continue;
            };
            if entry.unsupported.is_none() {
                entry.rounds.push(sample(comparison, place, (load, turns))?);
            }
        }
    }
    Ok(entries)
}

/// Takes a sample; repeats it while it is invalid.
fn sample(
    comparison: &mut Comparison<'_>,
    place: usize,
    wanted: (&Load, Sampling),
) -> Result<Round, TaskError> {
    let mut round = Round::default();
    for repeated in 0..=comparison.effort.repeats {
        round = once(comparison, place, wanted)?;
        round.repeated = repeated;
        if round.void.is_none() {
            break;
        }
    }
    Ok(round)
}

fn once(
    comparison: &mut Comparison<'_>,
    place: usize,
    (load, turns): (&Load, Sampling),
) -> Result<Round, TaskError> {
    let Some(checked) = comparison.running.servers().get(place) else {
        return Ok(Round::default());
    };
    let Ok(running) = checked.ready(load.protocol) else {
        return Ok(Round::default());
    };
    let setup = checked.server.setup;
    let cores = &comparison.environment.cores;
    // An agent shares the core of the load, so the load must sleep instead of spinning.
    let alone = cores.spare_one_beside(setup.workers) && setup.route != RouteKind::Agent;
    let mut profile = profile(load, &setup, running.ports.clients, &running.family);
    profile.warm = turns.warm;
    profile.span = Span::Time(turns.span);
    profile.spin = alone;
    let outcome = running_servers::reason(comparison.load_process.run(profile))?;
    empty_access_log(comparison, &setup)?;
    let sample = match outcome {
        Ok(sample) => sample,
        Err(why) => {
            return Ok(Round {
                void: Some(why),
                ..Round::default()
            });
        }
    };
    // The load needs more time than a relay, which therefore waits for it.
    let is_busy = load.is_saturating() && alone && setup.route != RouteKind::Relay;
    let share = is_busy.then_some(setup.workers);
    Ok(Round {
        void: void(&sample, share),
        figures: figures(&sample),
        repeated: 0,
    })
}

/// Creates the profile of a load, without durations.
pub(crate) fn profile(load: &Load, setup: &Setup, port: u16, watch: &[i32]) -> LoadProfile {
    let paths = setup.paths(load.answer.letter());
    let mut profile = LoadProfile::get(port, paths, load.answer);
    profile.protocol = load.protocol;
    profile.request.body_bytes = load.body_bytes;
    profile.request.browser = load.browser;
    LoadProfile {
        connections: load.connections,
        streams: load.streams,
        pacing: load.pacing,
        watch: watch.to_vec(),
        ..profile
    }
}

/// Returns the reason why a sample is invalid. `saturated` is the number of cores that the proxy
/// should have used completely.
pub(crate) fn void(sample: &Sample, saturated: Option<usize>) -> Option<String> {
    if let Some(failure) = &sample.failure {
        return Some(format!("{} requests failed: {failure}", sample.failed));
    }
    if sample.answered == 0 {
        return Some("nothing was answered".to_owned());
    }
    let cores = u32::try_from(saturated?).unwrap_or(u32::MAX);
    let share = share(sample) / f64::from(cores);
    (share < MIN_CORE_SHARE).then(|| {
        format!(
            "it used {:.0} % of its core only, the load {:.0} %",
            share * 100.0,
            load_share(sample) * 100.0
        )
    })
}

pub(crate) fn figures(sample: &Sample) -> BTreeMap<Figure, f64> {
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let answered = number(sample.answered.max(1));
    BTreeMap::from([
        (Figure::CpuMicros, micros(sample.cpu) / answered),
        (Figure::Share, share(sample)),
        (Figure::LoadShare, load_share(sample)),
        (
            Figure::PerSecond,
            number(sample.answered) / sample.time.as_secs_f64().max(1e-9),
        ),
        (Figure::P50Micros, micros(sample.p50)),
        (Figure::P99Micros, micros(sample.p99)),
        (Figure::P999Micros, micros(sample.p999)),
    ])
}

fn share(sample: &Sample) -> f64 {
    sample.cpu.as_secs_f64() / sample.time.as_secs_f64().max(1e-9)
}

fn load_share(sample: &Sample) -> f64 {
    let busy = sample.time.saturating_sub(sample.idle);
    busy.as_secs_f64() / sample.time.as_secs_f64().max(1e-9)
}

/// Truncates the log, which `proxyd` has open for appending.
fn empty_access_log(comparison: &Comparison<'_>, setup: &Setup) -> Result<(), TaskError> {
    if !setup.access_log {
        return Ok(());
    }
    let path = comparison.environment.file(ACCESS_LOG);
    match fs::OpenOptions::new().write(true).open(&path) {
        Ok(file) => file
            .set_len(0)
            .map_err(|source| TaskError::File { path, source }),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(TaskError::File { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sample {
        Sample {
            answered: 1_000,
            time: Duration::from_secs(1),
            cpu: Duration::from_millis(950),
            idle: Duration::from_millis(250),
            ..Sample::default()
        }
    }

    #[test]
    fn a_good_sample_counts_and_is_divided_by_its_requests() {
        assert_eq!(void(&sample(), Some(1)), None);
        let figures = figures(&sample());
        let cpu = figures.get(&Figure::CpuMicros).unwrap();
        assert!((cpu - 950.0).abs() < 1e-6);
        let rate = figures.get(&Figure::PerSecond).unwrap();
        assert!((rate - 1_000.0).abs() < 1e-6);
    }

    #[test]
    fn failures_and_idle_cores_make_a_sample_void() {
        let failed = Sample {
            failed: 3,
            failure: Some("status 502".to_owned()),
            ..sample()
        };
        assert_eq!(
            void(&failed, None).unwrap(),
            "3 requests failed: status 502"
        );
        let silent = Sample {
            answered: 0,
            ..sample()
        };
        assert!(void(&silent, None).is_some());
        assert_eq!(
            void(&sample(), Some(2)).unwrap(),
            "it used 48 % of its core only, the load 75 %"
        );
        let idle = Sample {
            cpu: Duration::from_millis(100),
            ..sample()
        };
        assert_eq!(void(&idle, None), None);
        assert!(void(&idle, Some(1)).is_some());
    }
}
