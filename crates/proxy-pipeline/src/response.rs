//! Responses: heads, bodies, local replies, tunnels.

pub(crate) mod alt_svc;
pub(crate) mod body;
pub(crate) mod compressed_body;
pub(crate) mod early_refusal;
pub(crate) mod error_page;
pub(crate) mod file_body;
pub(crate) mod held_response;
pub(crate) mod interim;
pub(crate) mod local_reply;
pub(crate) mod response_head;
pub(crate) mod tunnel;
pub(crate) mod upgradable_response;
