//! The `cors` block of a route.

use crate::decode::block::Block;
use crate::decode::decoder::Decoder;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::registry::policies::cors as spec;
use proxy_model::{Cors, OriginPattern};

pub(super) fn cors<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Cors> {
    let b = b.inner(d, &spec::CORS)?;
    let is_named = b.has(spec::ALLOW_ORIGINS.path) || b.is_misread(spec::ALLOW_ORIGINS.path);
    if !is_named {
        b.missing(d, spec::ALLOW_ORIGINS.name());
    }
    let cors = Cors {
        place: b.place(d),
        allow_origins: b.list(d, &spec::ALLOW_ORIGINS),
        allow_methods: b.list(d, &spec::ALLOW_METHODS),
        allow_headers: b.list(d, &spec::ALLOW_HEADERS),
        expose_headers: b.list(d, &spec::EXPOSE_HEADERS),
        allow_credentials: b.setting(d, &spec::ALLOW_CREDENTIALS),
        max_age: b.setting(d, &spec::MAX_AGE),
    };
    let mut origins = cors.allow_origins.iter();
    let any = origins.find(|origin| origin.value == OriginPattern::Any);
    if let Some(any) = any.filter(|_| *cors.allow_credentials) {
        let message = "`allow-credentials` excludes the origin `*`";
        let place = any.place().unwrap_or_default();
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        d.push(fault.help("name the origins: any page could act for its visitors"));
    }
    b.close(d);
    Some(cors)
}
