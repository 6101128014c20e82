//! The `rewrite` block of a route.

use crate::decode::block::Block;
use crate::decode::decoder::Decoder;
use crate::decode::routes::answers::prefix_replacement;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::registry::policies::rewrite as spec;
use proxy_model::{Place, Rewrite, Setting};
use proxy_routing::PathPattern;

pub(super) fn rewrite<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Rewrite> {
    let b = b.inner(d, &spec::REWRITE)?;
    let parts = [
        spec::REWRITE_STRIP_PREFIX.path,
        spec::REWRITE_REPLACE_PREFIX.path,
        spec::REWRITE_PATH.path,
        spec::REWRITE_CAPTURES.path,
    ];
    let written: Vec<Place> = parts
        .iter()
        .filter_map(|path| b.place_of(d, path))
        .collect();
    let place = b.place(d);
    match written.as_slice() {
        [] if parts.iter().any(|path| b.is_misread(path)) => {}
        [] => {
            let message = "`rewrite` names no path";
            let fault = Diagnostic::new(DiagnosticCode::MissingSetting, place, message);
            d.push(
                fault.help("write `strip-prefix`, `replace-prefix`, `path` or `path-from-regex`"),
            );
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
        captures: b.optional(d, &spec::REWRITE_CAPTURES),
        location: b.setting(d, &spec::REWRITE_LOCATION),
        cookies: b.setting(d, &spec::REWRITE_COOKIES),
    };
    b.close(d);
    let has_path = [
        rewrite.strip_prefix.as_ref().and_then(Setting::place),
        rewrite.replace_prefix.as_ref().and_then(Setting::place),
        rewrite.path.as_ref().and_then(Setting::place),
        rewrite.captures.as_ref().and_then(Setting::place),
    ];
    has_path.iter().any(Option::is_some).then_some(rewrite)
}

/// Reports captures of a path that no regex of the route has.
pub(in crate::decode) fn check_captures(
    d: &mut Decoder<'_, '_>,
    paths: &[Setting<PathPattern>],
    rewrite: Option<&Rewrite>,
) {
    let captures = rewrite.and_then(|rewrite| rewrite.captures.as_ref());
    let Some((captures, place)) = captures.and_then(|it| Some((&it.value, it.place()?))) else {
        return;
    };
    let [pattern] = paths else {
        let message = "`path-from-regex` needs a route with one `path-regex`";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        d.push(fault.help("write `matches { path-regex … }` as its only condition on paths"));
        return;
    };
    if pattern.setting() != "path-regex" {
        let message = format!("`{}` captures nothing", pattern.setting());
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        d.push(fault.help("write `path-regex`, or `replace-prefix` in place of `path-from-regex`"));
        return;
    }
    for group in captures.groups() {
        if pattern.group(group).is_none() {
            let message = format!("the route's `path-regex` has no group `{group}`");
            let fault = Diagnostic::new(DiagnosticCode::UndefinedName, place, message);
            d.push(fault.help("groups are numbered by their opening parentheses, from 1"));
        }
    }
}
