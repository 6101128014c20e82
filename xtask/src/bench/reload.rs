//! Reloads while requests come: how long each takes, and how late answers are meanwhile.

use super::cases::Load;
use super::contest::Contest;
use super::contestant::Contestant;
use super::effort::Turns;
use super::figure::{Figure, number};
use super::order::Span;
use super::report::{Entry, Round};
use super::rounds;
use super::running::Running;
use super::stage::{self, Actor};
use super::statistics;
use crate::clock::{self, Stopwatch};
use crate::task_error::TaskError;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// How often the proxy is asked whether it has reloaded.
const TICK: Duration = Duration::from_millis(5);
/// Longest that one reload may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Reloads for as long as requests come, in every round.
pub(super) fn repeat(
    contest: &mut Contest<'_>,
    contestants: &[Contestant],
    load: &Load,
) -> Result<Vec<Entry>, TaskError> {
    contest.stage.clear();
    let mut entries = Vec::new();
    for contestant in contestants {
        let actor = Actor::enter(contest.arena, &mut contest.loader, contestant)?;
        let running = match actor.ready(load.carrier) {
            Ok(running) => running,
            Err(why) => {
                entries.push(Entry::unsupported(&contestant.name, why.to_owned()));
                continue;
            }
        };
        let mut entry = Entry::new(&contestant.name);
        for _ in 0..contest.effort.fresh_rounds {
            match stage::reason(round(contest, contestant, running, load))? {
                Ok(round) => entry.rounds.push(round),
                Err(why) => entry.unsupported = Some(why),
            }
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn round(
    contest: &mut Contest<'_>,
    contestant: &Contestant,
    running: &Running,
    load: &Load,
) -> Result<Round, TaskError> {
    let mut drive = rounds::drive(
        load,
        &contestant.setup,
        running.ports.clients,
        &running.family,
    );
    let Turns { warm, span, .. } = contest.effort.usual;
    drive.warm = warm;
    drive.span = Span::Time(span);
    contest.loader.begin(drive)?;
    let watch = Stopwatch::start();
    clock::pause(warm);
    let mut times = Vec::new();
    let mut reloading = Ok(());
    while reloading.is_ok() && watch.elapsed() < warm + span {
        reloading = once(running).map(|time| times.push(time));
    }
    // The reply belongs to this order, whatever became of the reloads.
    let sample = contest.loader.finish();
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

/// One reload, from the signal until the proxy says that it is done.
fn once(running: &Running) -> Result<Duration, TaskError> {
    let before = reloads(running)?;
    running.signal(Signal::HUP)?;
    let watch = Stopwatch::start();
    while reloads(running)? <= before {
        if watch.elapsed() > PATIENCE {
            return Err(TaskError::Failed("it does not reload".to_owned()));
        }
        clock::pause(TICK);
    }
    Ok(watch.elapsed())
}

/// How often the proxy says that it has reloaded.
fn reloads(running: &Running) -> Result<f64, TaskError> {
    let asked = ask(running.ports.admin).map_err(|cause| {
        TaskError::Failed(format!("its admin interface does not answer: {cause}"))
    })?;
    let (_, body) = asked.split_once("\r\n\r\n").unwrap_or_default();
    let status: Option<Value> = serde_json::from_str(body).ok();
    let count = status.and_then(|status| status.get("config_reload_count")?.as_u64());
    count
        .map(number)
        .ok_or_else(|| TaskError::Failed("its /status has no config_reload_count".to_owned()))
}

fn ask(port: u16) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
