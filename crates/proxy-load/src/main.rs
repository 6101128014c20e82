//! The load process: `proxy-load CORE PORT` executes commands from standard input, on one core.

use proxy_load::LoadGenerator;
use proxy_load::command::{Command, Reply};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

const USAGE: &str =
    "usage: proxy-load CORE PORT: the core to stay on, and the port of the upstream";

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "{error}"));
            ExitCode::FAILURE
        }
    }
}

/// Executes commands until the end of input. The first line written is the upstream's address.
fn serve() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let core = arguments.next().and_then(|word| word.parse().ok());
    let port = arguments.next().and_then(|word| word.parse().ok());
    let (Some(core), Some(port)) = (core, port) else {
        return Err(io::Error::other(USAGE));
    };
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores)?;
    let mut generator = LoadGenerator::new(port).map_err(|cause| {
        io::Error::other(format!(
            "the load process cannot listen on port {port}: {cause}; is another bench running? \
             `ss -ltnp 'sport = :{port}'` shows it"
        ))
    })?;
    let mut out = io::stdout();
    writeln!(out, "{}", generator.backend_address()?)?;
    for line in io::stdin().lines() {
        let reply = match serde_json::from_str(&line?) {
            Ok(command) => follow(&mut generator, &command),
            Err(cause) => Reply::Failed(format!("not a command: {cause}")),
        };
        writeln!(out, "{}", serde_json::to_string(&reply)?)?;
    }
    Ok(())
}

fn follow(generator: &mut LoadGenerator, command: &Command) -> Reply {
    let done = match command {
        Command::Run(profile) => generator
            .run(profile)
            .map(|sample| Reply::Measured(Box::new(sample))),
        Command::Respond(time) => generator.respond(*time).map(|()| Reply::Responded),
    };
    done.unwrap_or_else(|cause| Reply::Failed(cause.to_string()))
}
