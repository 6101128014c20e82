//! The load generator's own capacity, which must exceed that of every proxy.

use super::cases::GET;
use super::effort::{Effort, Turns};
use super::environment::{Environment, RESPONDER_PORT};
use super::figure::number;
use super::load_process::LoadProcess;
use super::rounds;
use super::server::Setup;
use crate::task_error::TaskError;
use proxy_load::command::Span;
use std::time::Duration;

/// Time for which the responder outlasts any sample.
const MARGIN: Duration = Duration::from_millis(500);

/// Requests per second to a second load process, on the first core, that only responds.
pub(super) fn per_second(
    environment: &Environment,
    load_process: &mut LoadProcess,
    effort: Effort,
) -> Result<f64, TaskError> {
    let mut responder = LoadProcess::start(environment, environment.cores.first(), RESPONDER_PORT)?;
    let mut profile = rounds::profile(&GET, &Setup::PLAIN, RESPONDER_PORT, &[]);
    let Turns { warm, span, .. } = effort.usual;
    profile.warm = warm;
    profile.span = Span::Time(span);
    responder.respond(warm + span + MARGIN)?;
    let sample = load_process.run(profile)?;
    Ok(number(sample.answered) / sample.time.as_secs_f64().max(1e-9))
}
