//! The `compression` block of a route.

use super::block::Block;
use super::decoder::Decoder;
use crate::diagnostic_code::DiagnosticCode;
use proxy_coding::Coding;
use proxy_model::registry::policies as spec;
use proxy_model::registry::{Kind, Repeatable, Spec};
use proxy_model::{Compression, MediaRange, Setting};
use std::hash::Hash;

/// Default order: the fastest compression for its size first.
const PREFERRED: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

pub(super) fn compression<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Compression> {
    let b = b.inner(d, &spec::COMPRESSION)?;
    let compression = Compression {
        place: b.place(d),
        codings: list_or(d, &b, &spec::COMPRESSION_CODINGS, || PREFERRED.to_vec()),
        types: list_or(d, &b, &spec::COMPRESSION_TYPES, MediaRange::usual),
        min_size: b.setting(d, &spec::COMPRESSION_MIN_SIZE),
        gzip_level: b.setting(d, &spec::GZIP_LEVEL),
        brotli_level: b.setting(d, &spec::BROTLI_LEVEL),
        zstd_level: b.setting(d, &spec::ZSTD_LEVEL),
    };
    no_level_without_its_coding(d, &compression);
    b.close(d);
    Some(compression)
}

/// Reports levels of codings that are not used.
fn no_level_without_its_coding(d: &mut Decoder<'_, '_>, compression: &Compression) {
    for (coding, name, level) in [
        (Coding::Gzip, "gzip-level", &compression.gzip_level),
        (Coding::Brotli, "br-level", &compression.brotli_level),
        (Coding::Zstd, "zstd-level", &compression.zstd_level),
    ] {
        let is_used = compression.codings.contains(&coding);
        if let Some(place) = level.place().filter(|_| !is_used) {
            let message = format!("`{name}` has no effect: `codings` is without its coding");
            d.fault(DiagnosticCode::Conflict, place, message);
        }
    }
}

fn list_or<'t, K: Kind<Value: Eq + Hash>>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
    spec: &Spec<K, Repeatable>,
    usual: impl FnOnce() -> Vec<K::Value>,
) -> Setting<Vec<K::Value>> {
    let list = b.list(d, spec);
    let first = list.first().and_then(Setting::place);
    match first {
        Some(place) => Setting::at(list.into_iter().map(|one| one.value).collect(), place),
        None => Setting::defaulted(usual()),
    }
}
