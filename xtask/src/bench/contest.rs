//! A run: every case that is wanted, one after the other.

use super::arena::{Arena, BACKEND_PORT};
use super::cases::{Case, Field, Plan};
use super::contestant::{Contestant, OURS, Peer, Program, Setup};
use super::count;
use super::effort::Effort;
use super::fresh;
use super::loader::Loader;
use super::reload;
use super::report::CaseReport;
use super::rounds;
use super::stage::Stage;
use crate::task_error::TaskError;

/// What all cases of a run share.
pub(super) struct Contest<'a> {
    pub(super) arena: &'a Arena,
    pub(super) effort: Effort,
    pub(super) loader: Loader,
    pub(super) stage: Stage,
    peers: &'a [Peer],
}

impl<'a> Contest<'a> {
    /// Starts the load process; nobody is on the stage yet.
    pub(super) fn open(
        arena: &'a Arena,
        effort: Effort,
        peers: &'a [Peer],
    ) -> Result<Self, TaskError> {
        Ok(Self {
            arena,
            effort,
            loader: Loader::start(arena, arena.cores.last(), BACKEND_PORT)?,
            stage: Stage::default(),
            peers,
        })
    }

    /// Measures one case.
    pub(super) fn hold(&mut self, case: &Case) -> Result<CaseReport, TaskError> {
        let contestants = self.contestants(case);
        let Effort { usual, fine, .. } = self.effort;
        let entries = match case.plan {
            Plan::Load(load) => rounds::take(self, &contestants, (&load, usual))?,
            Plan::Fine(load) => rounds::take(self, &contestants, (&load, fine))?,
            Plan::Idle(connections) => fresh::rest(self, &contestants, connections)?,
            Plan::Start => fresh::weigh(self, &contestants)?,
            Plan::Reload(load) => reload::repeat(self, &contestants, &load)?,
            Plan::Count => count::all(self, &contestants)?,
        };
        Ok(CaseReport {
            name: case.name.to_owned(),
            title: case.title.to_owned(),
            with_peers: matches!(case.field, Field::Peers(_)),
            figures: case.figures.to_vec(),
            entries,
        })
    }

    /// Who takes part in a case. Peers from the command line know neither TLS nor how many
    /// workers are wanted, and may be more than one process.
    fn contestants(&self, case: &Case) -> Vec<Contestant> {
        let contestant = |name: &str, program: Program, setup: Setup| Contestant {
            name: name.to_owned(),
            program,
            setup,
        };
        match case.field {
            Field::Ours(setups) => setups
                .iter()
                .map(|(name, setup)| contestant(name, Program::Proxyd, *setup))
                .collect(),
            Field::Peers(setup) => {
                let mut field = vec![
                    contestant(OURS, Program::Proxyd, setup),
                    contestant("nginx", Program::Nginx, setup),
                    contestant("haproxy", Program::Haproxy, setup),
                ];
                let fits = setup == Setup::PLAIN && !matches!(case.plan, Plan::Count);
                let others = self.peers.iter().filter(|_| fits);
                field.extend(
                    others.map(|peer| contestant(&peer.name, Program::Other(peer.clone()), setup)),
                );
                field
            }
        }
    }
}
