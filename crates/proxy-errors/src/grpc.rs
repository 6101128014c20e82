//! The gRPC form of a problem: a status code and a message in trailers.

use crate::problem::Problem;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt::Write;

/// The status codes of gRPC, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum GrpcStatus {
    /// Not an error.
    Ok = 0,
    /// The caller cancelled the call.
    Cancelled = 1,
    /// An error without a more precise code.
    Unknown = 2,
    /// The request is invalid in any state of the system.
    InvalidArgument = 3,
    /// The deadline passed.
    DeadlineExceeded = 4,
    /// The requested entity does not exist.
    NotFound = 5,
    /// The entity to be created exists already.
    AlreadyExists = 6,
    /// The client lacks the permission.
    PermissionDenied = 7,
    /// A limit is exhausted.
    ResourceExhausted = 8,
    /// The system is not in the required state.
    FailedPrecondition = 9,
    /// The call was aborted because of a conflict.
    Aborted = 10,
    /// The request exceeds the valid range.
    OutOfRange = 11,
    /// The method is not implemented.
    Unimplemented = 12,
    /// An invariant is broken.
    Internal = 13,
    /// The service is unavailable for now; clients may retry.
    Unavailable = 14,
    /// Data is lost.
    DataLoss = 15,
    /// The client is not authenticated.
    Unauthenticated = 16,
}

impl GrpcStatus {
    /// The number sent in `grpc-status`, 0 to 16.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

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
