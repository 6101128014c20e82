//! Configurations with agents, and short functions for decisions.

use agent_protocol::{Allow, Decision, HeaderEdit, ProxyMessage, RequestHeaders, Wants};
use proxy_testkit::{AgentReply, FakeAgent, Proxyd, RawClient, Response, Upstream};
use std::fmt::Write;

/// Builder of a configuration with one listener, one worker, an upstream `u`, and a route `all`
/// with agents.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    agents: String,
    listener: String,
    names: String,
    route: String,
    target: String,
    top: String,
}

impl Setup {
    pub(crate) fn to(upstream: &Upstream) -> Self {
        Self {
            agents: String::new(),
            listener: String::new(),
            names: String::new(),
            route: "upstream \"u\"".to_owned(),
            target: upstream.address().to_string(),
            top: String::new(),
        }
    }

    /// Adds the route's next agent.
    pub(crate) fn agent(self, name: &str, agent: &FakeAgent, settings: &str) -> Self {
        self.agent_at(name, agent.path().to_str().unwrap(), settings)
    }

    /// Adds the route's next agent, by the path of its socket.
    pub(crate) fn agent_at(mut self, name: &str, path: &str, settings: &str) -> Self {
        writeln!(
            self.agents,
            "agent \"{name}\" {{ unix-socket \"{path}\"; {settings} }}"
        )
        .unwrap();
        write!(self.names, " \"{name}\"").unwrap();
        self
    }

    /// Adds an upstream with `target`, and the route's next agent behind it.
    pub(crate) fn agent_behind(mut self, name: &str, target: &str, settings: &str) -> Self {
        writeln!(
            self.agents,
            "agent \"{name}\" {{ upstream \"{name}\"; {settings} }}"
        )
        .unwrap();
        write!(self.names, " \"{name}\"").unwrap();
        self.top(&format!(
            "upstreams {{ upstream \"{name}\" {{ {target} }} }}"
        ))
    }

    /// Replaces the upstream of the route by other settings.
    pub(crate) fn route(mut self, settings: &str) -> Self {
        settings.clone_into(&mut self.route);
        self
    }

    /// Adds settings to the listener.
    pub(crate) fn listener(mut self, settings: &str) -> Self {
        settings.clone_into(&mut self.listener);
        self
    }

    pub(crate) fn top(mut self, blocks: &str) -> Self {
        writeln!(self.top, "{blocks}").unwrap();
        self
    }

    pub(crate) fn kdl(&self) -> String {
        let Self {
            agents,
            listener,
            names,
            route,
            target,
            top,
        } = self;
        format!(
            r#"
            listeners {{ listener "main" {{ address "127.0.0.1:0"; {listener} }} }}
            routes {{
                route "all" {{ {route}; agents {names} }}
                route "metrics" {{
                    priority 100
                    matches {{ path "/metrics" }}
                    service-type "builtin"
                    builtin-handler "metrics"
                }}
            }}
            upstreams {{ upstream "u" {{ targets {{ target "{target}" }} }} }}
            agents {{ {agents} }}
            worker-threads 1
            {top}
            "#
        )
    }

    #[track_caller]
    pub(crate) fn start(&self) -> Proxyd {
        Proxyd::start(env!("CARGO_BIN_EXE_proxyd"), &self.kdl())
    }
}

/// Starts an agent that receives request heads only.
pub(crate) fn head_agent(
    script: impl Fn(&RequestHeaders<'static>) -> AgentReply + Send + Sync + 'static,
) -> FakeAgent {
    FakeAgent::start(Wants::default(), move |event| match event {
        ProxyMessage::RequestHeaders(head) => script(head),
        _ => AgentReply::Silence,
    })
}

/// Allows the request, with these fields set.
pub(crate) fn allow_with(fields: &[(&'static str, &'static str)]) -> AgentReply {
    let edits = fields
        .iter()
        .map(|(name, value)| HeaderEdit::set(*name, *value).unwrap());
    AgentReply::Decide(Decision::Allow(Allow {
        request_headers: edits.collect(),
        ..Allow::default()
    }))
}

/// Returns the head in event number `index`, from 0.
#[track_caller]
pub(crate) fn head(agent: &FakeAgent, index: usize) -> RequestHeaders<'static> {
    let events = agent.wait_for_events(index + 1);
    match &events[index] {
        ProxyMessage::RequestHeaders(head) => head.clone(),
        other => panic!("{other:?}"),
    }
}

/// Returns the value of the first field with this name.
pub(crate) fn field<'h>(head: &'h RequestHeaders<'static>, name: &str) -> Option<&'h str> {
    let field = head.headers.iter().find(|field| field.name() == name)?;
    field.value().to_str()
}

/// Checks that `response` is a JSON error, and returns its message.
#[track_caller]
pub(crate) fn refusal(response: &Response, status: u16, code: &str) -> String {
    assert_eq!(response.status, status, "{}", response.text());
    let body = response.json();
    assert_eq!(body["error"]["code"], code, "{body}");
    body["error"]["message"].as_str().unwrap().to_owned()
}

/// Returns the reason of a failed request from the access log.
#[track_caller]
pub(crate) fn reason(proxyd: &Proxyd, response: &Response) -> String {
    let record = proxyd.access_record(&response.correlation_id());
    record.text("reason").to_owned()
}

/// Returns the value of the first sample that begins with `name`; 0 if there is none.
#[track_caller]
pub(crate) fn metric(client: &mut RawClient, name: &str) -> f64 {
    let page = client.ask(proxy_testkit::get("/metrics", &[])).text();
    let line = page.lines().find(|line| line.starts_with(name));
    line.map_or(0.0, |line| {
        line.rsplit(' ').next().unwrap().parse().unwrap()
    })
}
