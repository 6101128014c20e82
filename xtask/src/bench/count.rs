//! Instructions and system calls per request, counted by valgrind: the same on every machine and
//! under any load, but for what compilers and libraries change.

use super::arena::Arena;
use super::contest::Contest;
use super::contestant::{Contestant, Setup};
use super::figure::{Figure, number};
use super::loader::Loader;
use super::order::{Answer, Asking, Carrier, Drive, Rhythm, Span};
use super::report::{Entry, Round};
use super::running::{Counted, Run, Running};
use super::stage;
use crate::task_error::TaskError;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Requests of two runs; what the longer one counts more is due to requests alone.
const FEW: u64 = 200;
const MANY: u64 = 1_200;

/// Reading a clock enters the kernel under valgrind only.
const CLOCKS: &[&str] = &["sys_clock_gettime", "sys_gettimeofday", "sys_time"];

/// What one process did from its start to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    instructions: u64,
    system_calls: u64,
    clock_reads: u64,
}

/// What one request costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PerRequest {
    pub(super) instructions: f64,
    pub(super) system_calls: f64,
    pub(super) clock_reads: f64,
}

/// Counts for every contestant, once: another round would count the same.
pub(super) fn all(
    contest: &mut Contest<'_>,
    contestants: &[Contestant],
) -> Result<Vec<Entry>, TaskError> {
    contest.stage.clear();
    let mut entries = Vec::new();
    for contestant in contestants {
        let counted = per_request(contest.arena, &mut contest.loader, contestant);
        entries.push(match stage::reason(counted)? {
            Ok(PerRequest {
                instructions,
                system_calls,
                clock_reads,
            }) => Entry {
                rounds: vec![Round {
                    figures: BTreeMap::from([
                        (Figure::Instructions, instructions),
                        (Figure::SystemCalls, system_calls),
                        (Figure::ClockReads, clock_reads),
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
) -> Result<PerRequest, TaskError> {
    let few = whole_life(arena, loader, contestant, FEW)?;
    let many = whole_life(arena, loader, contestant, MANY)?;
    let each = |few: u64, many: u64| number(many.saturating_sub(few)) / number(MANY - FEW);
    Ok(PerRequest {
        instructions: each(few.instructions, many.instructions),
        system_calls: each(few.system_calls, many.system_calls),
        clock_reads: each(few.clock_reads, many.clock_reads),
    })
}

fn whole_life(
    arena: &Arena,
    loader: &mut Loader,
    contestant: &Contestant,
    requests: u64,
) -> Result<Counts, TaskError> {
    let counted = Counted {
        sums: arena.file(&format!("{}-{requests}.callgrind", contestant.name)),
        trace: arena.file(&format!("{}-{requests}.trace", contestant.name)),
    };
    let running = Running::start(arena, contestant, &Run::Counted(counted.clone()))?;
    let sample = loader.drive(asking(running.ports.clients, &contestant.setup, requests))?;
    if let Some(failure) = sample.failure {
        return Err(TaskError::Failed(failure));
    }
    running.end()?;
    let Counted { sums, trace } = counted;
    Counts::read(&text(sums)?, &text(trace)?)
        .ok_or_else(|| TaskError::Failed("callgrind counted nothing".to_owned()))
}

fn text(path: PathBuf) -> Result<String, TaskError> {
    match fs::read(&path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(source) => Err(TaskError::File { path, source }),
    }
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
    /// From callgrind's file, where one line names the events and another holds their sums, and
    /// from valgrind's trace, where a call that waits has a second line when it goes on.
    fn read(sums: &str, trace: &str) -> Option<Self> {
        let line = |key: &str| {
            let mut lines = sums.lines().filter_map(|line| line.strip_prefix(key));
            lines.next().map(str::split_ascii_whitespace)
        };
        let mut events = line("events:")?.zip(line("totals:")?);
        let (_, instructions) = events.find(|(name, _)| *name == "Ir")?;
        let mut counts = Self {
            instructions: instructions.parse().ok()?,
            ..Self::default()
        };
        for name in trace.lines().filter_map(called) {
            if CLOCKS.contains(&name) {
                counts.clock_reads += 1;
            } else {
                counts.system_calls += 1;
            }
        }
        Some(counts)
    }
}

/// The name of the system call that a line of the trace begins with.
fn called(line: &str) -> Option<&str> {
    let (_, call) = line.strip_prefix("SYSCALL[")?.split_once(") ")?;
    let name = call.split(['(', ' ']).next()?;
    (!name.starts_with('.')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMS: &str = "version: 1\nevents: Ir Bc\nfn=(1)\n1 2\ntotals: 500 7\n";
    const TRACE: &str = "\
==7== Callgrind\n\
SYSCALL[7,3](228) sys_clock_gettime( 1, 0x1 )[sync] --> Success(0x0) \n\
SYSCALL[7,3](232) sys_epoll_wait ( 14, 0x1, 1024, 83 ) --> [async] ... \n\
SYSCALL[7,3](232) ... [async] --> Success(0x1) \n\
SYSCALL[7,3](45) sys_recvfrom ( 9, 0x1, 8192, 0, 0x0, 0x0 ) --> [async] ... \n";

    #[test]
    fn instructions_calls_and_clock_reads_are_told_apart() {
        let counts = Counts {
            instructions: 500,
            system_calls: 2,
            clock_reads: 1,
        };
        assert_eq!(Counts::read(SUMS, TRACE), Some(counts));
        assert_eq!(Counts::read("events: Bc\ntotals: 500\n", TRACE), None);
    }
}
