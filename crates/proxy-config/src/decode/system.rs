//! The `system` block.

use super::block::Block;
use super::decoder::Decoder;
use proxy_model::System;
use proxy_model::registry::system as spec;

pub(super) fn system<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> System {
    System {
        worker_threads: b.setting(d, &spec::WORKER_THREADS),
        graceful_shutdown_timeout: b.setting(d, &spec::GRACEFUL_SHUTDOWN_TIMEOUT),
    }
}
