//! The `system` block.

use super::block::Block;
use super::decoder::Decoder;
use proxy_model::registry::system as spec;
use proxy_model::{Dns, System};

pub(super) fn system<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> System {
    System {
        worker_threads: b.setting(d, &spec::WORKER_THREADS),
        graceful_shutdown_timeout: b.setting(d, &spec::GRACEFUL_SHUTDOWN_TIMEOUT),
        dns: dns(d, b),
    }
}

fn dns<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Dns {
    let b = b.inner(d, &spec::DNS).unwrap_or_else(Block::empty);
    let dns = Dns {
        name_servers: b.list(d, &spec::NAME_SERVERS),
        timeout: b.setting(d, &spec::DNS_TIMEOUT),
        min_ttl: b.setting(d, &spec::MIN_TTL_SECS),
        max_ttl: b.setting(d, &spec::MAX_TTL_SECS),
    };
    b.close(d);
    dns
}
