//! What the load can do by itself: no proxy is measured right that could do more.

use super::arena::{Arena, RESPONDER_PORT};
use super::cases::GET;
use super::contestant::Setup;
use super::effort::{Effort, Turns};
use super::figure::number;
use super::loader::Loader;
use super::order::Span;
use super::rounds;
use crate::task_error::TaskError;
use std::time::Duration;

/// The responder goes on for longer than any sample takes to come to its end.
const MARGIN: Duration = Duration::from_millis(500);

/// Requests a second to a second load process, on the first core, that does nothing but answer.
pub(super) fn per_second(
    arena: &Arena,
    loader: &mut Loader,
    effort: Effort,
) -> Result<f64, TaskError> {
    let mut responder = Loader::start(arena, arena.cores.first(), RESPONDER_PORT)?;
    let mut drive = rounds::drive(&GET, &Setup::PLAIN, RESPONDER_PORT, &[]);
    let Turns { warm, span, .. } = effort.usual;
    drive.warm = warm;
    drive.span = Span::Time(span);
    responder.respond(warm + span + MARGIN)?;
    let sample = loader.drive(drive)?;
    Ok(number(sample.answered) / sample.time.as_secs_f64().max(1e-9))
}
