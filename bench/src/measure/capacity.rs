//! Capacity of the load generator, which must exceed that of every proxy.

use crate::cases::GET;
use crate::effort::{Effort, Sampling};
use crate::figure::number;
use crate::measure::rounds;
use crate::servers::environment::{Environment, RESPONDER_PORT};
use crate::servers::load_process::LoadProcess;
use crate::servers::server::Setup;
use proxy_load::command::Span;
use std::time::Duration;
use xtask_kit::task_error::TaskError;

/// Additional time of the responder after the end of a sample.
const MARGIN: Duration = Duration::from_millis(500);

/// Measures requests per second to a second load process on the first core, which only responds.
pub(crate) fn per_second(
    environment: &Environment,
    load_process: &mut LoadProcess,
    effort: Effort,
) -> Result<f64, TaskError> {
    let mut responder = LoadProcess::start(environment, environment.cores.first(), RESPONDER_PORT)?;
    let mut profile = rounds::profile(&GET, &Setup::PLAIN, RESPONDER_PORT, &[]);
    let Sampling { warm, span, .. } = effort.usual;
    profile.warm = warm;
    profile.span = Span::Time(span);
    responder.respond(warm + span + MARGIN)?;
    let sample = load_process.run(profile)?;
    Ok(number(sample.answered) / sample.time.as_secs_f64().max(1e-9))
}
