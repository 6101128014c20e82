//! The contestants that run at the moment.

use super::arena::Arena;
use super::contestant::Contestant;
use super::loader::Loader;
use super::order::Carrier;
use super::proof;
use super::running::{Run, Running};
use crate::task_error::TaskError;

/// Contestants, in order.
#[derive(Debug, Default)]
pub(super) struct Stage {
    cast: Vec<Actor>,
}

/// A contestant, its process, and what it has shown to do as all must.
#[derive(Debug)]
pub(super) struct Actor {
    pub(super) contestant: Contestant,
    /// Why there is none, if there is none.
    running: Result<Running, String>,
    /// What it does otherwise, by carrier.
    refused: Vec<(Carrier, String)>,
}

impl Stage {
    /// Puts contestants on, in place of those that are. The same ones go on as they are.
    pub(super) fn set(
        &mut self,
        arena: &Arena,
        loader: &mut Loader,
        contestants: &[Contestant],
    ) -> Result<(), TaskError> {
        let on = self.cast.iter().map(|actor| &actor.contestant);
        if on.eq(contestants) {
            return Ok(());
        }
        self.cast.clear();
        for contestant in contestants {
            self.cast.push(Actor::enter(arena, loader, contestant)?);
        }
        Ok(())
    }

    /// Nobody.
    pub(super) fn clear(&mut self) {
        self.cast.clear();
    }

    /// Who is on, in order.
    pub(super) fn cast(&self) -> &[Actor] {
        &self.cast
    }
}

impl Actor {
    /// Starts a contestant, and lets it prove itself by every carrier that it is set up for.
    pub(super) fn enter(
        arena: &Arena,
        loader: &mut Loader,
        contestant: &Contestant,
    ) -> Result<Self, TaskError> {
        let running = reason(Running::start(arena, contestant, &Run::Bare))?;
        let mut refused = Vec::new();
        if let Ok(running) = &running {
            let carriers: &[Carrier] = if contestant.setup.tls {
                &[Carrier::Tls, Carrier::Http2]
            } else {
                &[Carrier::Plain]
            };
            for carrier in carriers {
                let port = running.ports.clients;
                let proof = proof::prove(loader, port, &contestant.setup, *carrier);
                if let Err(why) = reason(proof)? {
                    refused.push((*carrier, why));
                }
            }
        }
        Ok(Self {
            contestant: contestant.clone(),
            running,
            refused,
        })
    }

    /// Its process, if it can be driven by this carrier; else why not.
    pub(super) fn ready(&self, carrier: Carrier) -> Result<&Running, &str> {
        let mut refused = self.refused.iter();
        match refused.find(|(refused, _)| *refused == carrier) {
            Some((_, why)) => Err(why),
            None => self.running.as_ref().map_err(String::as_str),
        }
    }
}

/// Parts what a contestant lacks, which is left out and told, from what ends a run.
pub(super) fn reason<T>(outcome: Result<T, TaskError>) -> Result<Result<T, String>, TaskError> {
    match outcome {
        Ok(done) => Ok(Ok(done)),
        Err(TaskError::Failed(why)) => Ok(Err(why)),
        Err(error @ TaskError::Start { .. }) => Ok(Err(error.told())),
        Err(error) => Err(error),
    }
}
