//! Errors of a request: in full for the log, without internals for the client.
//!
//! Every failure has a [`Reason`], every reason belongs to one [`ErrorType`], and a [`Problem`] is
//! a reason with the details of one case. The caller decides whether to respond.

mod blame;
mod error_type;
mod reason;

mod limit_type;
mod status_text;

mod detail;
mod message;
mod problem;

mod response_form;

mod grpc;
mod grpc_status;
mod html;
mod json;
mod local_reply;

mod reference;

pub use blame::{Blame, SentRequest};
pub use detail::Detail;
pub use error_type::ErrorType;
pub use grpc_status::GrpcStatus;
pub use html::escaped_html;
pub use limit_type::LimitType;
pub use local_reply::LocalReply;
pub use problem::Problem;
pub use reason::Reason;
pub use reference::reference_page;
pub use response_form::{ResponseForm, ServiceForm, is_grpc};
pub use status_text::status_text;
