//! Instructions and system calls per request, counted by valgrind. They do not depend on the
//! machine and its load, only on compilers and libraries.

use crate::figure::{Figure, number};
use crate::measure::comparison::Comparison;
use crate::report::{Entry, Round};
use crate::servers::environment::Environment;
use crate::servers::load_process::LoadProcess;
use crate::servers::running::{Counted, Run, Running};
use crate::servers::running_servers;
use crate::servers::server::Server;
use proxy_load::command::{LoadProfile, ResponseSize, Span};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use xtask_kit::task_error::TaskError;

/// Number of requests in two runs. The difference of their counts belongs to requests, not to the
/// process's start. The start gathers entropy, so it varies by a million instructions: that is 100
/// per request for 10 000 requests.
const SHORT_RUN_REQUESTS: u64 = 200;
const LONG_RUN_REQUESTS: u64 = 10_200;

/// System calls that read a clock under valgrind only.
const CLOCKS: &[&str] = &["sys_clock_gettime", "sys_gettimeofday", "sys_time"];

/// Counts of one process, from start to exit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    instructions: u64,
    system_calls: u64,
    clock_reads: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PerRequest {
    pub(crate) instructions: f64,
    pub(crate) system_calls: f64,
    pub(crate) clock_reads: f64,
}

/// Counts every server once; the counts of further rounds would be the same.
pub(crate) fn all(
    comparison: &mut Comparison<'_>,
    servers: &[Server],
) -> Result<Vec<Entry>, TaskError> {
    comparison.running.clear();
    let mut entries = Vec::new();
    for server in servers {
        let load_process = &mut comparison.load_process;
        let counted = per_request(comparison.environment, load_process, server, 0);
        entries.push(match running_servers::reason(counted)? {
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
                ..Entry::new(&server.name)
            },
            Err(why) => Entry::unsupported(&server.name, why),
        });
    }
    Ok(entries)
}

/// Counts the cost of a request on an open connection: a small GET, or a POST with a body of
/// `body_bytes`.
pub(crate) fn per_request(
    environment: &Environment,
    load_process: &mut LoadProcess,
    server: &Server,
    body_bytes: usize,
) -> Result<PerRequest, TaskError> {
    let mut count = |requests| {
        let mut load = LoadProfile {
            span: Span::Requests(requests),
            ..LoadProfile::get(
                0,
                server.setup.paths(ResponseSize::Small.letter()),
                ResponseSize::Small,
            )
        };
        load.request.body_bytes = body_bytes;
        count_process(environment, load_process, server, load, requests)
    };
    let few = count(SHORT_RUN_REQUESTS)?;
    let many = count(LONG_RUN_REQUESTS)?;
    let each = |few: u64, many: u64| {
        number(many.saturating_sub(few)) / number(LONG_RUN_REQUESTS - SHORT_RUN_REQUESTS)
    };
    Ok(PerRequest {
        instructions: each(few.instructions, many.instructions),
        system_calls: each(few.system_calls, many.system_calls),
        clock_reads: each(few.clock_reads, many.clock_reads),
    })
}

fn count_process(
    environment: &Environment,
    load_process: &mut LoadProcess,
    server: &Server,
    load: LoadProfile,
    requests: u64,
) -> Result<Counts, TaskError> {
    let counted = Counted {
        sums: environment.file(&format!("{}-{requests}.callgrind", server.name)),
        trace: environment.file(&format!("{}-{requests}.trace", server.name)),
    };
    let running = Running::start(environment, server, &Run::Counted(counted.clone()))?;
    let sample = load_process.run(LoadProfile {
        port: running.ports.clients,
        ..load
    })?;
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

impl Counts {
    /// Parses callgrind's output, which has a line with the names of events and one with their
    /// sums, and valgrind's trace, in which a blocking call has a second line for its return.
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

/// Returns the name of the system call at the start of a trace line.
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
    fn instructions_calls_and_clock_reads_are_counted_separately() {
        let counts = Counts {
            instructions: 500,
            system_calls: 2,
            clock_reads: 1,
        };
        assert_eq!(Counts::read(SUMS, TRACE), Some(counts));
        assert_eq!(Counts::read("events: Bc\ntotals: 500\n", TRACE), None);
    }
}
