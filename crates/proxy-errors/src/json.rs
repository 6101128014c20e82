//! The JSON error body.

use crate::problem::Problem;

impl Problem {
    /// The error body in the form of the interface contract.
    #[must_use]
    pub fn to_json(&self, correlation_id: &str) -> String {
        let mut out = Vec::with_capacity(256);
        self.write_json(correlation_id, &mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    /// Appends the error body to `out`.
    pub fn write_json(&self, correlation_id: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"error\":{\"code\":");
        write_string(out, self.error_type().code());
        out.extend_from_slice(b",\"message\":");
        write_string(out, &self.client_message());
        out.extend_from_slice(b",\"correlation_id\":");
        write_string(out, correlation_id);
        if let Some(seconds) = self.retry_after_secs() {
            out.extend_from_slice(b",\"retry_after\":");
            out.extend_from_slice(seconds.to_string().as_bytes());
        }
        out.extend_from_slice(b"}}");
    }
}

/// Appends `text` as a JSON string. [RFC 8259 §7]
fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..=0x1F => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
