//! The fault of an unknown name.

use super::block::Block;
use super::decoder::Decoder;
use super::suggest::nearest;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::Place;

/// Maximum number of known names that a fault lists.
const MAX_NAMES: usize = 12;

/// Settings known from other servers under another name, each with its equivalent here.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("basic_auth", BASIC_AUTH),
    ("basicauth", BASIC_AUTH),
    ("auth-basic", BASIC_AUTH),
    ("auth_basic", BASIC_AUTH),
    ("gzip", COMPRESSION),
    ("brotli", COMPRESSION),
    ("compress", COMPRESSION),
    ("encode", COMPRESSION),
    ("proxy-cache", CACHE),
    ("proxy_cache", CACHE),
    ("return", ANSWERS),
    ("redir", ANSWERS),
    ("rewrite-path", REWRITE),
    ("uri", REWRITE),
];

const BASIC_AUTH: &str = "write `basic-auth { user \"NAME\" \"HASH\" }` in a route";
const REWRITE: &str = "write `rewrite { strip-prefix \"/api\" }` in a route";
const ANSWERS: &str = "write `redirect` or `respond` in a route";

const CACHE: &str = "write `cache` in the route's `policies`";
const COMPRESSION: &str = "write `compression` in the route's `policies`";

impl Block<'_> {
    /// The fault of an unknown name, with a suggestion.
    pub(super) fn unknown(&mut self, d: &Decoder<'_, '_>, name: &str, place: Place) -> Diagnostic {
        let message = format!("unknown setting `{name}`{}", self.within(d));
        let fault = Diagnostic::new(DiagnosticCode::UnknownSetting, place, message);
        if let Some((_, instead)) = OTHER_NAMES.iter().find(|(known, _)| *known == name) {
            return fault.label("has another name here").help(*instead);
        }
        let known = d.known.names(self.path);
        if let Some(near) = nearest(name, known.iter().map(|known| &*known.name)) {
            let suggested = known.iter().find(|known| *known.name == *near);
            self.suggested
                .extend(suggested.map(|known| known.meaning.path));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::known::NameIndex;

    #[test]
    fn no_other_name_is_one_of_a_setting_here() {
        let known = NameIndex::new();
        for (name, _) in OTHER_NAMES {
            assert_eq!(known.elsewhere(name), [""; 0], "{name}");
        }
    }
}
