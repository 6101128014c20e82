//! A running proxy, started on its cores and stopped on drop.

use crate::servers::bench_agent::BenchAgent;
use crate::servers::configuration::{self, Ports};
use crate::servers::environment::Environment;
use crate::servers::server::{Program, RouteKind, Server};
use proxy_load::clock::{self, Stopwatch};
use proxy_load::meter;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;

/// Maximum time for a proxy's start.
const STARTING: Duration = Duration::from_secs(15);
/// Maximum time for a proxy's start under valgrind.
const STARTING_SLOWLY: Duration = Duration::from_mins(2);
/// Maximum time for a proxy's exit.
const ENDING: Duration = Duration::from_secs(20);
/// Time after which the signal to exit is repeated.
const REMINDER: Duration = Duration::from_millis(500);
/// Interval of polling a process.
const TICK: Duration = Duration::from_millis(10);
/// Number of log lines in the message of a failure.
const LOG_LINES: usize = 6;

/// Processes of a proxy. Dropping it kills them.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) ports: Ports,
    /// IDs of the started process and its children.
    pub(crate) family: Vec<i32>,
    child: Child,
    log: PathBuf,
    /// Dropped after the proxy, which sends requests to the agent.
    _agent: Option<BenchAgent>,
}

/// Tool under which a proxy runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// No tool.
    Bare,
    /// Callgrind, with a single process.
    Counted(Counted),
}

/// Output files of callgrind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Sums of instructions.
    pub(crate) sums: PathBuf,
    /// Trace of system calls.
    pub(crate) trace: PathBuf,
}

impl Running {
    /// Starts a server, and waits until it listens.
    ///
    /// # Errors
    /// Reason why the server is omitted: a missing program, or a failure.
    pub(crate) fn start(
        environment: &Environment,
        server: &Server,
        run: &Run,
    ) -> Result<Self, TaskError> {
        let program = &server.program;
        let ports = Ports {
            clients: environment.free_port()?,
            admin: environment.free_port()?,
        };
        let agent = (server.setup.route == RouteKind::Agent).then(|| {
            let socket = environment.file(&configuration::agent_socket(ports));
            BenchAgent::start(environment, program, &socket)
        });
        let agent = agent.transpose()?;
        let config = configuration::write(environment, program, &server.setup, ports)?;
        let words = words(environment, program, config, ports, run)?;
        let log = environment.file(&format!("{}.log", ports.clients));
        let mut running = Self {
            ports,
            family: Vec::new(),
            child: spawn(environment, &words, server.setup.workers, &log)?,
            log,
            _agent: agent,
        };
        let timeout = match run {
            Run::Bare => STARTING,
            Run::Counted(_) => STARTING_SLOWLY,
        };
        running.await_listening(timeout)?;
        running.family = meter::family(running.process());
        Ok(running)
    }

    /// Sends a signal to the started process.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), TaskError> {
        send(self.process(), signal)
    }

    /// Terminates the process, and waits for its exit.
    pub(crate) fn end(mut self) -> Result<(), TaskError> {
        if self.stop()? {
            return Ok(());
        }
        Err(self.failed("did not end when it was told to"))
    }

    /// Returns true if the process exited in time. The signal is repeated, because a server that is
    /// about to wait for clients may notice it only with the next connection.
    fn stop(&mut self) -> Result<bool, TaskError> {
        let watch = Stopwatch::start();
        let mut reminded: Option<Stopwatch> = None;
        while watch.elapsed() < ENDING {
            if self.status()?.is_some() {
                return Ok(true);
            }
            if reminded.is_none_or(|reminded| reminded.elapsed() >= REMINDER) {
                self.signal(Signal::TERM)?;
                reminded = Some(Stopwatch::start());
            }
            clock::pause(TICK);
        }
        Ok(false)
    }

    fn process(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(i32::MAX)
    }

    fn await_listening(&mut self, timeout: Duration) -> Result<(), TaskError> {
        let watch = Stopwatch::start();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.ports.clients)).is_err() {
            if let Some(status) = self.status()? {
                return Err(self.failed(&format!("ended ({status})")));
            }
            if watch.elapsed() > timeout {
                return Err(self.failed("does not listen"));
            }
            clock::pause(TICK);
        }
        Ok(())
    }

    fn status(&mut self) -> Result<Option<ExitStatus>, TaskError> {
        self.child.try_wait().map_err(|source| TaskError::System {
            action: "ask how a proxy is",
            source,
        })
    }

    /// Creates an error that contains the end of the log.
    fn failed(&self, what: &str) -> TaskError {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().map(str::trim).collect();
        let first = lines.len().saturating_sub(LOG_LINES);
        let end = lines.get(first..).unwrap_or_default().join(" / ");
        let message = if end.is_empty() {
            what.to_owned()
        } else {
            format!("{what}: {end}")
        };
        TaskError::Failed(message)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Workers survive a killed master, but not one that exits.
        if matches!(self.stop(), Ok(true)) {
            return;
        }
        for process in &self.family {
            drop(send(*process, Signal::KILL));
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Does nothing if the process has exited.
fn send(process: i32, signal: Signal) -> Result<(), TaskError> {
    let Some(pid) = Pid::from_raw(process) else {
        return Ok(());
    };
    match kill_process(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(errno) => Err(TaskError::System {
            action: "signal a proxy",
            source: errno.into(),
        }),
    }
}

/// Returns the command line of a program.
fn words(
    environment: &Environment,
    program: &Program,
    config: PathBuf,
    ports: Ports,
    run: &Run,
) -> Result<Vec<OsString>, TaskError> {
    let config = config.into_os_string();
    let mut words: Vec<OsString> = Vec::new();
    if let Run::Counted(Counted { sums, trace }) = run {
        words.extend([installed("valgrind")?, "--tool=callgrind".into()]);
        for (option, file) in [("--callgrind-out-file=", sums), ("--log-file=", trace)] {
            let mut word = OsString::from(option);
            word.push(file);
            words.push(word);
        }
        words.push("--trace-syscalls=yes".into());
    }
    match program {
        Program::Proxyd => words.extend([
            environment.proxyd.clone().into_os_string(),
            "--config".into(),
            config,
        ]),
        Program::Nginx => {
            let folder = environment.folder().as_os_str().to_owned();
            let errors = environment.file("nginx-error.log").into_os_string();
            words.extend([installed("nginx")?, "-p".into(), folder]);
            words.extend(["-e".into(), errors, "-c".into(), config]);
            if matches!(run, Run::Counted(_)) {
                words.extend(["-g".into(), "master_process off;".into()]);
            }
        }
        Program::Haproxy => {
            words.extend([installed("haproxy")?, "-db".into(), "-f".into(), config]);
        }
        Program::Varnish => {
            let address = format!("127.0.0.1:{}", ports.clients);
            let folder = environment.file(&format!("varnish-{}", ports.clients));
            words.extend([
                installed("varnishd")?,
                "-F".into(),
                "-j".into(),
                "none".into(),
            ]);
            words.extend(["-a".into(), address.into(), "-f".into(), config]);
            words.extend(["-n".into(), folder.into_os_string()]);
            words.extend(["-s".into(), "malloc,256m".into()]);
            words.extend(["-p".into(), "thread_pools=1".into()]);
        }
    }
    Ok(words)
}

fn installed(program: &str) -> Result<OsString, TaskError> {
    let found = command::find(program).map(PathBuf::into_os_string);
    found.ok_or_else(|| TaskError::Failed(format!("{program} is not installed")))
}

fn spawn(
    environment: &Environment,
    words: &[OsString],
    workers: usize,
    log: &PathBuf,
) -> Result<Child, TaskError> {
    let created = File::create(log).and_then(|out| Ok((out.try_clone()?, out)));
    let (out, err) = created.map_err(|source| TaskError::File {
        path: log.clone(),
        source,
    })?;
    let [program, arguments @ ..] = words else {
        return Err(TaskError::Failed("a peer without a command".to_owned()));
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(environment.folder())
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err);
    let child: io::Result<Child> = environment
        .cores
        .on_first(workers, || command.spawn())
        .and_then(|child| child);
    child.map_err(|source| TaskError::Start {
        program: program.display().to_string(),
        source,
    })
}
