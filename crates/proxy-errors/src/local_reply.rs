//! A response of the proxy's own to a problem, whichever of its interfaces sends it.

use crate::problem::Problem;
use crate::response_form::ResponseForm;
use crate::status_text::status_text;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// The response to a problem, in memory.
#[derive(Clone, Debug)]
pub struct LocalReply {
    /// Status of the problem.
    pub status: StatusCode,
    /// The fields that every such response has; an interface adds its own.
    pub headers: HeaderMap,
    /// The whole body; empty for gRPC, which has the problem in `headers`.
    pub body: Vec<u8>,
}

impl LocalReply {
    /// The response to `problem` in `form`.
    #[must_use]
    pub fn new(problem: &Problem, form: ResponseForm, correlation_id: &HeaderValue) -> Self {
        let mut headers = HeaderMap::new();
        let mut status = problem.status();
        let mut body = Vec::new();
        let id = correlation_id.to_str().unwrap_or_default();
        headers.insert(CACHE_CONTROL, NO_STORE);
        match form {
            ResponseForm::Json => problem.write_json(id, &mut body),
            ResponseForm::Html => problem.write_html(id, &mut body),
            ResponseForm::Grpc => {
                status = StatusCode::OK;
                problem.write_grpc_headers(&mut headers);
            }
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(form.content_type()));
        if let Some(seconds) = problem.retry_after_secs() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        Self {
            status,
            headers,
            body,
        }
    }

    /// The bytes of an HTTP/1.1 response to an unparsable request: they announce the close, and the
    /// connection must be closed after them.
    #[must_use]
    pub fn to_closing_message(&self) -> Vec<u8> {
        let (status, reason) = (self.status.as_u16(), status_text(self.status));
        let mut bytes = format!("HTTP/1.1 {status} {reason}\r\n").into_bytes();
        for (name, value) in &self.headers {
            push_line(&mut bytes, name, value);
        }
        push_line(&mut bytes, &CONNECTION, &CLOSE);
        push_line(&mut bytes, &CONTENT_LENGTH, &self.body.len().into());
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

fn push_line(bytes: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) {
    bytes.extend_from_slice(name.as_str().as_bytes());
    bytes.extend_from_slice(b": ");
    bytes.extend_from_slice(value.as_bytes());
    bytes.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detail::Detail;
    use crate::reason::Reason;

    #[test]
    fn a_closing_message_has_the_length_of_its_body_and_ends_the_connection() {
        let problem = Problem::new(Reason::BadRequestLine, Detail::None);
        let id = HeaderValue::from_static("an-id");
        let reply = LocalReply::new(&problem, ResponseForm::Json, &id);

        let message = String::from_utf8(reply.to_closing_message()).unwrap();
        let (head, body) = message.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{head}");
        assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
        assert!(
            head.ends_with(&format!("\r\ncontent-length: {}", body.len())),
            "{head}"
        );
        assert!(body.contains("an-id"), "{body}");
    }

    #[test]
    fn a_problem_of_a_grpc_call_is_in_the_fields_of_a_200() {
        let problem = Problem::new(Reason::AllTargetsUnhealthy, Detail::None);
        let id = HeaderValue::from_static("an-id");

        let reply = LocalReply::new(&problem, ResponseForm::Grpc, &id);
        assert_eq!((reply.status, reply.body.len()), (StatusCode::OK, 0));
        assert!(reply.headers.contains_key("grpc-status"));
    }
}
