//! The contestants that run at the moment.

use super::arena::Arena;
use super::contestant::Contestant;
use super::loader::Loader;
use super::proof;
use super::running::{Run, Running};
use crate::trouble::Trouble;

/// Contestants, each with its process or the reason why it has none.
#[derive(Debug, Default)]
pub(super) struct Stage {
    cast: Vec<(Contestant, Result<Running, String>)>,
}

impl Stage {
    /// Puts contestants on, in place of those that are. The same ones go on as they are.
    pub(super) fn set(
        &mut self,
        arena: &Arena,
        loader: &mut Loader,
        contestants: &[Contestant],
    ) -> Result<(), Trouble> {
        if self.cast.iter().map(|(who, _)| who).eq(contestants) {
            return Ok(());
        }
        self.cast.clear();
        for contestant in contestants {
            let running = enter(arena, loader, contestant)?;
            self.cast.push((contestant.clone(), running));
        }
        Ok(())
    }

    /// Nobody.
    pub(super) fn clear(&mut self) {
        self.cast.clear();
    }

    /// Who is on, in order.
    pub(super) fn cast(&self) -> &[(Contestant, Result<Running, String>)] {
        &self.cast
    }
}

/// Starts a contestant and proves that it does as all must; else says why not.
pub(super) fn enter(
    arena: &Arena,
    loader: &mut Loader,
    contestant: &Contestant,
) -> Result<Result<Running, String>, Trouble> {
    let proven = Running::start(arena, contestant, &Run::Bare).and_then(|running| {
        proof::prove(loader, running.ports.clients, &contestant.setup).map(|()| running)
    });
    reason(proven)
}

/// Parts what a contestant lacks, which is left out and told, from what ends a run.
pub(super) fn reason<T>(outcome: Result<T, Trouble>) -> Result<Result<T, String>, Trouble> {
    match outcome {
        Ok(done) => Ok(Ok(done)),
        Err(Trouble::Finding(why)) => Ok(Err(why)),
        Err(trouble @ Trouble::Start { .. }) => Ok(Err(trouble.told())),
        Err(trouble) => Err(trouble),
    }
}
