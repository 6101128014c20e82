//! Error messages for operators.

use std::error::Error;

/// Joins the messages of an error and its causes. Causes with a text that is already contained are not
/// repeated.
pub(crate) fn error_text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let reported = error.to_string();
        if !text.ends_with(&reported) {
            text.push_str(": ");
            text.push_str(&reported);
        }
        cause = error.source();
    }
    text
}
