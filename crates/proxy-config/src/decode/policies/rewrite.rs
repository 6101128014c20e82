//! The `rewrite` block of a route.

use crate::decode::block::Block;
use crate::decode::decoder::Decoder;
use crate::decode::routes::answers::prefix_replacement;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::registry::policies::rewrite as spec;
use proxy_model::{Place, Rewrite, Setting};

pub(super) fn rewrite<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Rewrite> {
    let b = b.inner(d, &spec::REWRITE)?;
    let parts = [
        spec::REWRITE_STRIP_PREFIX.path,
        spec::REWRITE_REPLACE_PREFIX.path,
        spec::REWRITE_PATH.path,
    ];
    let written: Vec<Place> = parts
        .iter()
        .filter_map(|path| b.place_of(d, path))
        .collect();
    let place = b.place(d);
    match written.as_slice() {
        [] if parts.iter().any(|path| b.was_meant(path)) => {}
        [] => {
            let message = "`rewrite` names no path";
            let fault = Diagnostic::new(DiagnosticCode::MissingSetting, place, message);
            d.push(fault.help("write `strip-prefix`, `replace-prefix` or `path`"));
        }
        [_] => {}
        [first, further @ ..] => {
            for place in further {
                let message = "a path is rewritten once";
                let fault = Diagnostic::new(DiagnosticCode::Conflict, *place, message);
                d.push(fault.label("again here").related(*first, "first here"));
            }
        }
    }
    let rewrite = Rewrite {
        place,
        strip_prefix: b.optional(d, &spec::REWRITE_STRIP_PREFIX),
        replace_prefix: prefix_replacement(d, &b, &spec::REWRITE_REPLACE_PREFIX),
        path: b.optional(d, &spec::REWRITE_PATH),
        location: b.setting(d, &spec::REWRITE_LOCATION),
        cookies: b.setting(d, &spec::REWRITE_COOKIES),
    };
    b.close(d);
    let has_path = [
        rewrite.strip_prefix.as_ref().and_then(Setting::place),
        rewrite.replace_prefix.as_ref().and_then(Setting::place),
        rewrite.path.as_ref().and_then(Setting::place),
    ];
    has_path.iter().any(Option::is_some).then_some(rewrite)
}
