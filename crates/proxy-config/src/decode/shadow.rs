//! The `shadow` block of a route.

use super::block::Block;
use super::decoder::Decoder;
use super::references::Among;
use proxy_model::registry::policies as spec;
use proxy_model::{Setting, Shadow, UpstreamIndex};

pub(super) fn shadow<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Shadow> {
    let b = b.inner(d, &spec::SHADOW)?;
    let place = b.place(d);
    let name = b.required(d, &spec::SHADOW_UPSTREAM);
    let percent = b.setting(d, &spec::SHADOW_PERCENT);
    b.close(d);
    let upstream = d.resolve_name(Among::Upstreams, &name?)?;
    Some(Shadow {
        place,
        upstream: Setting {
            value: UpstreamIndex(upstream.value),
            origin: upstream.origin,
        },
        percent,
    })
}
