//! The command that explains the decision on a request.

use crate::explain::ExplainRequest;
use proxy_model::{FileId, Sources};
use std::fmt::Write;

/// The command that explains the decision on a request.
pub(crate) fn command(request: &ExplainRequest, sources: &Sources) -> String {
    // The first source is the file that was given; those after it are included.
    let file = sources.name(FileId::default());
    let mut command = format!("proxyd explain --config {}", quoted(file));
    for (name, value) in &request.headers {
        let field = quoted(&format!("{name}: {value}"));
        // Writing to a `String` cannot fail.
        _ = write!(command, " -H {field}");
    }
    if let Some(listener) = &request.listener {
        _ = write!(command, " --listener {}", quoted(listener));
    }
    if let Some(address) = request.client_ip {
        _ = write!(command, " --client-ip {address}");
    }
    _ = write!(command, " {} {}", request.method, quoted(&request.url));
    command
}

/// Quotes one word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
