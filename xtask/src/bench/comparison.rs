//! The state of a run: its environment, and the processes that live longer than one case.

use super::cases::{Case, Field};
use super::effort::Effort;
use super::environment::{BACKEND_PORT, Environment};
use super::load_process::LoadProcess;
use super::running_servers::RunningServers;
use super::server::{OURS, Program, Server, Setup};
use crate::task_error::TaskError;

/// State shared by all cases of a run.
pub(super) struct Comparison<'a> {
    pub(super) environment: &'a Environment,
    pub(super) effort: Effort,
    pub(super) load_process: LoadProcess,
    pub(super) running: RunningServers,
    /// Without nginx and `HAProxy`.
    alone: bool,
}

impl<'a> Comparison<'a> {
    /// Starts the load process; no server runs yet.
    pub(super) fn open(environment: &'a Environment, effort: Effort) -> Result<Self, TaskError> {
        Ok(Self {
            environment,
            effort,
            load_process: LoadProcess::start(environment, environment.cores.last(), BACKEND_PORT)?,
            running: RunningServers::default(),
            alone: false,
        })
    }

    /// Like [`Self::open`], without peers.
    pub(super) fn of_proxyd_alone(
        environment: &'a Environment,
        effort: Effort,
    ) -> Result<Self, TaskError> {
        Ok(Self {
            alone: true,
            ..Self::open(environment, effort)?
        })
    }

    /// The servers of a case.
    pub(super) fn servers(&self, case: &Case) -> Vec<Server> {
        let server = |name: &str, program: Program, setup: Setup| Server {
            name: name.to_owned(),
            program,
            setup,
        };
        match case.field {
            Field::Ours(setups) => setups
                .iter()
                .map(|(name, setup)| server(name, Program::Proxyd, *setup))
                .collect(),
            Field::Peers(setup) if self.alone => vec![server(OURS, Program::Proxyd, setup)],
            Field::Peers(setup) => {
                let field = vec![
                    server(OURS, Program::Proxyd, setup),
                    server("nginx", Program::Nginx, setup),
                    server("haproxy", Program::Haproxy, setup),
                ];
                field
            }
        }
    }
}
