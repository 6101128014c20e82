//! The memory of processes that have just started.

use super::contest::Contest;
use super::contestant::Contestant;
use super::figure::{Figure, number};
use super::meter;
use super::order::{Answer, Asking, Carrier, Drive, Rhythm, Sample, Span};
use super::report::{Entry, Round};
use super::rounds;
use super::running::Running;
use super::stage::{self, Actor};
use crate::task_error::TaskError;
use std::collections::BTreeMap;
use std::time::Duration;

/// Opens connections to a fresh process of each contestant, lets them rest, and measures what
/// each has added.
pub(super) fn rest(
    contest: &mut Contest<'_>,
    contestants: &[Contestant],
    connections: u32,
) -> Result<Vec<Entry>, TaskError> {
    each(contest, contestants, |contest, _, running| {
        let drive = resting(running, connections, contest.effort.settle);
        let sample = match stage::reason(contest.loader.drive(drive))? {
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

/// Measures a fresh process of each contestant, and what each route has added to the first.
pub(super) fn weigh(
    contest: &mut Contest<'_>,
    contestants: &[Contestant],
) -> Result<Vec<Entry>, TaskError> {
    let mut first: Option<(u32, u64)> = None;
    each(contest, contestants, |_, contestant, running| {
        let bytes = meter::memory_bytes(&running.family);
        let routes = contestant.setup.routes;
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

/// Every round of every contestant, each with a process of its own.
fn each(
    contest: &mut Contest<'_>,
    contestants: &[Contestant],
    mut measure: impl FnMut(&mut Contest<'_>, &Contestant, &Running) -> Result<Round, TaskError>,
) -> Result<Vec<Entry>, TaskError> {
    contest.stage.clear();
    let mut entries: Vec<Entry> = contestants
        .iter()
        .map(|contestant| Entry::new(&contestant.name))
        .collect();
    for _ in 0..contest.effort.fresh_rounds {
        for (contestant, entry) in contestants.iter().zip(&mut entries) {
            if entry.unsupported.is_some() {
                continue;
            }
            let actor = Actor::enter(contest.arena, &mut contest.loader, contestant)?;
            match actor.ready(Carrier::Plain) {
                Ok(running) => entry.rounds.push(measure(contest, contestant, running)?),
                Err(why) => entry.unsupported = Some(why.to_owned()),
            }
        }
    }
    Ok(entries)
}

fn resting(running: &Running, connections: u32, settle: Duration) -> Drive {
    Drive {
        port: running.ports.clients,
        carrier: Carrier::Plain,
        asking: Asking {
            paths: vec![format!("/{}", Answer::Small.letter())],
            answer: Answer::Small,
            body_bytes: 0,
            browser: false,
        },
        connections,
        streams: 1,
        rhythm: Rhythm::Once,
        warm: Duration::ZERO,
        span: Span::Time(settle),
        spin: false,
        watch: running.family.clone(),
        capture: false,
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
