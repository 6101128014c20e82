//! A run: the requested cases, one after the other.

use super::cases::{Case, Field, Plan};
use super::count;
use super::effort::Effort;
use super::environment::{BACKEND_PORT, Environment};
use super::fresh;
use super::load_process::LoadProcess;
use super::reload;
use super::report::CaseReport;
use super::rounds;
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

    /// Measures one case.
    pub(super) fn hold(&mut self, case: &Case) -> Result<CaseReport, TaskError> {
        let servers = self.servers(case);
        let Effort { usual, fine, .. } = self.effort;
        let entries = match case.plan {
            Plan::Load(load) => rounds::take(self, &servers, (&load, usual))?,
            Plan::Fine(load) => rounds::take(self, &servers, (&load, fine))?,
            Plan::Idle(connections) => fresh::rest(self, &servers, connections)?,
            Plan::Start => fresh::weigh(self, &servers)?,
            Plan::Reload(load) => reload::repeat(self, &servers, &load)?,
            Plan::Count => count::all(self, &servers)?,
        };
        Ok(CaseReport {
            name: case.name.to_owned(),
            title: case.title.to_owned(),
            with_peers: matches!(case.field, Field::Peers(_)),
            figures: case.figures.to_vec(),
            entries,
        })
    }

    /// The servers of a case.
    fn servers(&self, case: &Case) -> Vec<Server> {
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
