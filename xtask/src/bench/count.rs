//! Instructions and system calls per request, counted by callgrind: the same on every machine and
//! under any load, but for what compilers and libraries change.

use super::arena::Arena;
use super::contest::Contest;
use super::contestant::{Contestant, Setup};
use super::figure::{Figure, number};
use super::loader::Loader;
use super::order::{Answer, Asking, Carrier, Drive, Rhythm, Span};
use super::report::{Entry, Round};
use super::running::{Run, Running};
use super::stage;
use crate::trouble::Trouble;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Requests of two runs; what the longer one counts more is due to requests alone.
const FEW: u64 = 200;
const MANY: u64 = 1_200;

/// What one process did from its start to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    instructions: u64,
    system_calls: u64,
}

/// What one request costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PerRequest {
    pub(super) instructions: f64,
    pub(super) system_calls: f64,
}

/// Counts for every contestant, once: another round would count the same.
pub(super) fn all(
    contest: &mut Contest<'_>,
    contestants: &[Contestant],
) -> Result<Vec<Entry>, Trouble> {
    contest.stage.clear();
    let mut entries = Vec::new();
    for contestant in contestants {
        let counted = per_request(contest.arena, &mut contest.loader, contestant);
        entries.push(match stage::reason(counted)? {
            Ok(PerRequest {
                instructions,
                system_calls,
            }) => Entry {
                rounds: vec![Round {
                    figures: BTreeMap::from([
                        (Figure::Instructions, instructions),
                        (Figure::SystemCalls, system_calls),
                    ]),
                    ..Round::default()
                }],
                ..Entry::new(&contestant.name)
            },
            Err(why) => Entry::unsupported(&contestant.name, why),
        });
    }
    Ok(entries)
}

/// What a small GET costs a contestant, over a connection that is kept.
pub(super) fn per_request(
    arena: &Arena,
    loader: &mut Loader,
    contestant: &Contestant,
) -> Result<PerRequest, Trouble> {
    let few = whole_life(arena, loader, contestant, FEW)?;
    let many = whole_life(arena, loader, contestant, MANY)?;
    let each = |few: u64, many: u64| number(many.saturating_sub(few)) / number(MANY - FEW);
    Ok(PerRequest {
        instructions: each(few.instructions, many.instructions),
        system_calls: each(few.system_calls, many.system_calls),
    })
}

fn whole_life(
    arena: &Arena,
    loader: &mut Loader,
    contestant: &Contestant,
    requests: u64,
) -> Result<Counts, Trouble> {
    let path = arena.file(&format!("callgrind-{}-{requests}.out", contestant.name));
    let running = Running::start(arena, contestant, &Run::Counted(path.clone()))?;
    let sample = loader.drive(asking(running.ports.clients, &contestant.setup, requests))?;
    if let Some(failure) = sample.failure {
        return Err(Trouble::Finding(failure));
    }
    running.end()?;
    let text = fs::read_to_string(&path).map_err(|source| Trouble::File { path, source })?;
    Counts::read(&text).ok_or_else(|| Trouble::Finding("callgrind counted nothing".to_owned()))
}

fn asking(port: u16, setup: &Setup, requests: u64) -> Drive {
    Drive {
        port,
        carrier: Carrier::Plain,
        asking: Asking {
            paths: setup.paths(Answer::Small.letter()),
            answer: Answer::Small,
            body_bytes: 0,
            browser: false,
        },
        connections: 1,
        streams: 1,
        rhythm: Rhythm::Closed,
        warm: Duration::ZERO,
        span: Span::Requests(requests),
        spin: true,
        watch: Vec::new(),
        capture: false,
    }
}

impl Counts {
    /// From callgrind's file: one line names the events, another holds their sums.
    fn read(text: &str) -> Option<Self> {
        let line = |key: &str| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(key));
            lines.next().map(str::split_ascii_whitespace)
        };
        let sums: BTreeMap<&str, u64> = line("events:")?
            .zip(line("totals:")?.map(|sum| sum.parse().unwrap_or(0)))
            .collect();
        Some(Self {
            instructions: *sums.get("Ir")?,
            system_calls: *sums.get("sysCount")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read_by_the_names_of_their_events() {
        let text = "version: 1\nevents: Ir sysCount sysTime\nfn=(1)\n1 2\ntotals: 500 7 90\n";
        let counts = Counts {
            instructions: 500,
            system_calls: 7,
        };
        assert_eq!(Counts::read(text), Some(counts));
        assert_eq!(Counts::read("events: Ir\ntotals: 500\n"), None);
    }
}
