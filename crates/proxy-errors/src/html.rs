//! The HTML error page.

use crate::problem::Problem;
use crate::status_text;

const STYLE_SHEET: &str = "body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;\
                     padding:0 1rem}:root{color-scheme:light dark}code{overflow-wrap:anywhere}";

impl Problem {
    /// An HTML page without references to other resources.
    #[must_use]
    pub fn to_html(&self, correlation_id: &str) -> String {
        let mut out = Vec::with_capacity(1024);
        self.write_html(correlation_id, &mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    /// Appends the page to `out`.
    pub fn write_html(&self, correlation_id: &str, out: &mut Vec<u8>) {
        let title = format!("{} {}", self.status().as_u16(), status_text(self.status()));
        let title = title.trim_end();
        let mut put = |text: &str| out.extend_from_slice(text.as_bytes());
        put("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        put("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
        put(title);
        put("</title>\n<style>");
        put(STYLE_SHEET);
        put("</style>\n</head>\n<body>\n<main>\n<h1>");
        put(title);
        put("</h1>\n<p>");
        put(&escaped_html(&self.client_message()));
        put("</p>\n");
        if let Some(seconds) = self.retry_after_secs() {
            let unit = if seconds == 1 { "second" } else { "seconds" };
            put(&format!("<p>Please try again in {seconds} {unit}.</p>\n"));
        }
        put("<p>Request ID: <code>");
        put(&escaped_html(correlation_id));
        put("</code></p>\n</main>\n</body>\n</html>\n");
    }
}

/// `text` escaped for HTML. Control characters, which HTML cannot represent, become U+FFFD.
#[must_use]
pub fn escaped_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            _ if letter.is_control() => out.push('\u{FFFD}'),
            _ => out.push(letter),
        }
    }
    out
}
