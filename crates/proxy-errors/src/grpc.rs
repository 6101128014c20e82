//! The gRPC form of a problem: a status code and a message in trailers.

use crate::grpc_status::GrpcStatus;
use crate::problem::Problem;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt::Write;

impl Problem {
    /// The code for `grpc-status`.
    #[must_use]
    pub const fn grpc_status(&self) -> GrpcStatus {
        self.reason().grpc_status()
    }

    /// The text for `grpc-message`: the client's message, percent-encoded as in the gRPC protocol.
    #[must_use]
    pub fn grpc_message(&self) -> String {
        percent_encoded(&self.client_message())
    }

    /// Sets the fields of a trailers-only response, which is sent with status 200.
    pub fn write_grpc_headers(&self, headers: &mut HeaderMap) {
        let content_type = HeaderValue::from_static("application/grpc");
        headers.insert(http::header::CONTENT_TYPE, content_type);
        let status = HeaderValue::from(u16::from(self.grpc_status().code()));
        headers.insert(HeaderName::from_static("grpc-status"), status);
        if let Ok(message) = HeaderValue::try_from(self.grpc_message()) {
            headers.insert(HeaderName::from_static("grpc-message"), message);
        }
    }
}

fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if matches!(byte, b' '..=b'~') && byte != b'%' {
            out.push(char::from(byte));
        } else {
            // Writing into a String cannot fail.
            write!(out, "%{byte:02X}").unwrap_or_default();
        }
    }
    out
}
