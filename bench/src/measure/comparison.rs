//! State of a run: environment, and processes that several cases use.

use crate::cases::{Case, Field};
use crate::effort::Effort;
use crate::servers::environment::{BACKEND_PORT, Environment};
use crate::servers::load_process::LoadProcess;
use crate::servers::running_servers::RunningServers;
use crate::servers::server::{OURS, Program, Server, Setup};
use std::iter;
use xtask_kit::task_error::TaskError;

pub(crate) struct Comparison<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) effort: Effort,
    pub(crate) load_process: LoadProcess,
    pub(crate) running: RunningServers,
    /// Whether nginx, `HAProxy` and Varnish are omitted.
    alone: bool,
}

impl<'a> Comparison<'a> {
    /// Starts the load process, but no server.
    pub(crate) fn open(environment: &'a Environment, effort: Effort) -> Result<Self, TaskError> {
        Ok(Self {
            environment,
            effort,
            load_process: LoadProcess::start(environment, environment.cores.last(), BACKEND_PORT)?,
            running: RunningServers::default(),
            alone: false,
        })
    }

    /// Like [`Self::open`], without peers.
    pub(crate) fn for_proxyd_alone(
        environment: &'a Environment,
        effort: Effort,
    ) -> Result<Self, TaskError> {
        Ok(Self {
            alone: true,
            ..Self::open(environment, effort)?
        })
    }

    pub(crate) fn servers(&self, case: &Case) -> Vec<Server> {
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
                let peers = setup.peers().iter();
                let peers = peers.map(|(name, program)| server(name, program.clone(), setup));
                iter::once(server(OURS, Program::Proxyd, setup))
                    .chain(peers)
                    .collect()
            }
        }
    }
}
