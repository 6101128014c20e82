//! Agent process of a proxy, on the core of the load.

use crate::servers::environment::Environment;
use crate::servers::server::Program;
use proxy_load::clock::{self, Stopwatch};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use xtask_kit::task_error::TaskError;

/// Maximum time for an agent's start.
const STARTING: Duration = Duration::from_secs(10);
/// Interval of looking for the agent's socket.
const TICK: Duration = Duration::from_millis(5);

/// Running agent. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct BenchAgent(Child);

impl BenchAgent {
    /// Starts an agent with the proxy's protocol, and waits for its socket.
    pub(crate) fn start(
        environment: &Environment,
        program: &Program,
        socket: &Path,
    ) -> Result<Self, TaskError> {
        let protocol = match program {
            Program::Proxyd => "native",
            Program::Nginx => "http",
            Program::Haproxy => "spop",
            Program::Varnish => {
                return Err(TaskError::Failed("Varnish calls no agent".to_owned()));
            }
        };
        let mut command = Command::new(&environment.agent);
        command.arg(protocol).arg(socket).stdin(Stdio::null());
        let spawned = environment.cores.on_last(|| command.spawn());
        let child = spawned.and_then(|child| child);
        let child = child.map_err(|source| TaskError::Start {
            program: "the agent".to_owned(),
            source,
        })?;
        let agent = Self(child);
        let watch = Stopwatch::start();
        while !socket.exists() {
            if watch.elapsed() > STARTING {
                return Err(TaskError::Failed("the agent does not listen".to_owned()));
            }
            clock::pause(TICK);
        }
        Ok(agent)
    }
}

impl Drop for BenchAgent {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
