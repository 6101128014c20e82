//! Formatting of a configuration's text. The `kdl` crate's document tree is edited, so that
//! comments and spellings are preserved.

mod layout;

use crate::kdl;
use crate::kdl::document;
use crate::kdl::kdl2::Kdl2;
use crate::migrate::refused;
use crate::report::Report;
use ::kdl::KdlDocument;

/// Formats one file's text, called `name` in messages: four spaces per level, one setting per line,
/// at most one empty line in a row; comments and the spelling of values are preserved. KDL 1 is
/// converted to KDL 2.
///
/// # Errors
///
/// If the text is neither KDL 2 nor KDL 1.
pub fn format(text: &str, name: &str) -> Result<String, Report> {
    let Some(converted) = Kdl2::convert(text).filter(|_| kdl::forbidden(text).is_none()) else {
        return Err(refused(text, name));
    };
    let Some(mut document) = document::parse(&converted.text) else {
        return Ok(converted.text.into_owned());
    };
    let mut same = document.clone();
    layout::apply(&mut document);
    let formatted = document.to_string();
    let formatted = format!("{}\n", formatted.trim());
    // Formatting must not change the meaning. Text that would change is left unformatted.
    let Ok(mut read_again) = KdlDocument::parse_v2(&formatted) else {
        return Ok(converted.text.into_owned());
    };
    same.clear_format_recursive();
    read_again.clear_format_recursive();
    Ok(if same == read_again {
        formatted
    } else {
        converted.text.into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_keeps_comments_spellings_and_single_empty_lines() {
        let text = "// The site.\nlimits   {\n\n  max-header-count   0x10 // hex\n\n\n  /- gone 1\n \
                    max-body-size-bytes \"1MB\";}\n\nupstreams { upstream \"a\" { target \
                    \"127.0.0.1:1\" } }\n// End.\n";
        let expected = "// The site.\nlimits {\n    max-header-count 0x10 // hex\n\n    /- gone 1\n    \
                        max-body-size-bytes \"1MB\"\n}\n\nupstreams {\n    upstream \"a\" {\n        \
                        target \"127.0.0.1:1\"\n    }\n}\n// End.\n";
        let formatted = format(text, "x.kdl").unwrap();
        assert_eq!(formatted, expected);
        assert_eq!(format(&formatted, "x.kdl").unwrap(), formatted);
    }

    #[test]
    fn a_layout_keeps_comments_behind_blocks() {
        let text = "limits { } // one\nroutes {\n  route \"a\" { upstream \"b\" } /* two */\n}\n";
        let expected = "limits {} // one\nroutes {\n    route \"a\" {\n        upstream \"b\"\n    } \
                        /* two */\n}\n";
        assert_eq!(format(text, "x.kdl").unwrap(), expected);
    }

    #[test]
    fn a_layout_converts_kdl_1_and_keeps_its_quotes_and_disabled_parts() {
        let text = "limits {\n  a \"b\" true\n  /- c false\n}\n";
        let expected = "limits {\n    a \"b\" #true\n    /- c #false\n}\n";
        assert_eq!(format(text, "x.kdl").unwrap(), expected);
    }

    #[test]
    fn text_that_cannot_be_read_is_refused_with_its_place() {
        let report = format("limits {", "x.kdl").unwrap_err().to_string();
        assert!(report.contains("x.kdl:1:"), "{report}");
        assert!(format(&"a { ".repeat(100_000), "x.kdl").is_err());
    }
}
