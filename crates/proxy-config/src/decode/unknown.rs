//! The fault of an unknown name.

use super::block::Block;
use super::decoder::Decoder;
use super::suggest::nearest;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::Place;

/// Maximum number of known names that a fault lists.
const MAX_NAMES: usize = 12;

/// Features of other servers that are not offered here, by their names there, each with the nearest
/// substitute.
const NOT_OFFERED: &[(&str, &str)] = &[
    ("redirect", ""),
    ("return", ""),
    ("rewrite", ""),
    ("strip-prefix", ""),
    ("replace-prefix", ""),
    ("gzip", COMPRESSED),
    ("brotli", COMPRESSED),
    ("compress", COMPRESSED),
    ("compression", COMPRESSED),
    ("encode", COMPRESSED),
    ("basic-auth", ""),
    ("basic_auth", ""),
    ("basicauth", ""),
    ("auth-basic", ""),
    ("auth_basic", ""),
    ("cache", ""),
    (
        "cors",
        "`response-headers` sets the fields of one fixed origin",
    ),
];

const COMPRESSED: &str = "`static-files { precompressed #true }` sends compressed neighbours of files; what an upstream \
     compresses is passed on";

impl Block<'_> {
    /// The fault of an unknown name, with a suggestion.
    pub(super) fn unknown(&mut self, d: &Decoder<'_, '_>, name: &str, place: Place) -> Diagnostic {
        let message = format!("unknown setting `{name}`{}", self.within(d));
        let fault = Diagnostic::new(DiagnosticCode::UnknownSetting, place, message);
        if let Some((_, instead)) = NOT_OFFERED.iter().find(|(known, _)| *known == name) {
            let fault = fault.label("not offered yet");
            return match *instead {
                "" => fault.help("leave it out, or let the upstream do it"),
                instead => fault.help(instead),
            };
        }
        let known = d.known.names(self.path);
        if let Some(near) = nearest(name, known.iter().map(|known| &*known.name)) {
            let meant = known.iter().find(|known| *known.name == *near);
            self.meant.extend(meant.map(|known| known.meaning.path));
            return fault.label(format!("did you mean `{near}`?"));
        }
        let elsewhere = d.known.elsewhere(name);
        if let Some(block) = elsewhere.first().filter(|block| !block.is_empty()) {
            return fault.label(format!(
                "`{name}` belongs in `{}`",
                block.replace('.', " > ")
            ));
        }
        let main = known.iter().filter(|known| known.is_main);
        let names: Vec<String> = main.map(|known| format!("`{}`", known.name)).collect();
        if names.is_empty() {
            return fault.label("nothing is set here");
        }
        let rest = match names.len().saturating_sub(MAX_NAMES) {
            0 => String::new(),
            rest => format!(" and {rest} more"),
        };
        let shown: Vec<&str> = names.iter().take(MAX_NAMES).map(String::as_str).collect();
        fault.help(format!("known here: {}{rest}", shown.join(", ")))
    }
}
