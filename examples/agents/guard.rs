//! A minimal agent: it refuses `/private`, and marks inspected requests.

use proxy_agent_kit::{Agent, AgentFailure, Allow, Answer, Decision, HeaderEdit, RequestHeaders};
use std::io::{Error, Result};

struct Guard;

impl Agent for Guard {
    type State = ();

    fn name(&self) -> &'static str {
        "guard/1"
    }

    async fn request_headers(
        &self,
        request: &RequestHeaders<'static>,
        (): &mut (),
    ) -> std::result::Result<Answer, AgentFailure> {
        if request.target.as_bytes().starts_with(b"/private") {
            return Ok(proxy_agent_kit::block("a private path"));
        }
        let seen =
            HeaderEdit::set("x-seen-by", "guard").map_err(|e| AgentFailure(e.to_string()))?;
        Ok(Decision::Allow(Allow {
            request_headers: vec![seen],
            ..Allow::default()
        }))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let socket = std::env::args().nth(1);
    let socket = socket.ok_or_else(|| Error::other("usage: guard-agent SOCKET"))?;
    proxy_agent_kit::run(Guard, socket).await
}
