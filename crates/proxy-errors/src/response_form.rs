//! The form of error responses.

pub(crate) mod accept;

use crate::response_form::accept::prefers_html;

/// A route's declaration of its error form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ServiceForm {
    /// `service-type "api"`: JSON.
    Api,
    /// `service-type "web"`: HTML.
    Web,
    /// None: the request decides.
    #[default]
    Unsaid,
}

/// The form of an error response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResponseForm {
    /// The JSON error body.
    Json,
    /// HTML page, for browsers.
    Html,
    /// A trailers-only gRPC response.
    Grpc,
}

impl ResponseForm {
    /// The form for a request with this `Accept` and `Content-Type`. gRPC requests get gRPC, then
    /// the route decides, then `Accept`: HTML only if it prefers `text/html`.
    #[must_use]
    pub fn choose(
        service: ServiceForm,
        accept: Option<&[u8]>,
        content_type: Option<&[u8]>,
    ) -> Self {
        if content_type.is_some_and(is_grpc) {
            return Self::Grpc;
        }
        match service {
            ServiceForm::Web => Self::Html,
            ServiceForm::Unsaid if accept.is_some_and(prefers_html) => Self::Html,
            ServiceForm::Api | ServiceForm::Unsaid => Self::Json,
        }
    }

    /// The `Content-Type` of the response.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Html => "text/html; charset=utf-8",
            Self::Grpc => "application/grpc",
        }
    }
}

/// Returns true if a `Content-Type` is `application/grpc` or has a suffix such as `+proto`; not
/// `application/grpc-web`, because its clients read a body.
#[must_use]
pub fn is_grpc(content_type: &[u8]) -> bool {
    const NAME: &[u8] = b"application/grpc";
    let Some((name, rest)) = content_type.split_at_checked(NAME.len()) else {
        return false;
    };
    name.eq_ignore_ascii_case(NAME) && matches!(rest, [] | [b'+' | b';' | b' ', ..])
}
