//! Memory of responses that the proxy makes for one request.

use super::Exchange;
use crate::record::agent_record::AgentReply;
use crate::response::body::Body;
use crate::response::local_reply::Answer;
use crate::upload::body_buffer::memory_problem;
use bytes::Bytes;
use http::{Method, Response};
use proxy_errors::Problem;
use proxy_limits::{ClientKey, ResponseReservation};

/// Minimum size of a document that is counted in memory, in bytes.
const COUNTED_MIN_BYTES: usize = 16 << 10;

impl Exchange {
    /// The response with a document that was made for this request.
    pub(crate) fn answer_counted(&self, mut answer: Answer) -> Result<Response<Body>, Problem> {
        if self.head.method == Method::HEAD || answer.body.len() < COUNTED_MIN_BYTES {
            return Ok(self.answer(answer));
        }
        let bytes = std::mem::take(&mut answer.body);
        let memory = self.reserve_response(bytes.len() as u64);
        let memory = memory.ok_or_else(memory_problem)?;
        let response = self.answer(answer);
        Ok(response.map(|_| Body::counted(bytes, memory)))
    }

    /// Memory for a response that the proxy makes itself; `None` if its client, or all clients
    /// together, hold too much.
    pub(crate) fn reserve_response(&self, bytes: u64) -> Option<ResponseReservation> {
        let client = ClientKey::from(self.completion.record.client_ip);
        self.worker().shared.memory.reserve_response(client, bytes)
    }

    /// Reserves memory for a large body of an agent's response; without memory, the body is left
    /// out.
    pub(super) fn reserve_reply(&self, reply: &mut AgentReply) {
        let length = reply.body.as_ref().map_or(0, Bytes::len);
        if length < COUNTED_MIN_BYTES {
            return;
        }
        reply.memory = self.reserve_response(length as u64);
        if reply.memory.is_none() {
            reply.body = None;
        }
    }
}
