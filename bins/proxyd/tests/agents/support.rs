//! Configurations with agents, and shorthands for decisions.

use agent_protocol::{Allow, Decision, HeaderEdit, ProxyMessage, RequestHeaders, Wants};
use proxy_testkit::{AgentReply, FakeAgent, Proxyd, RawClient, Response, Upstream};
use std::fmt::Write;

/// A configuration: one listener, one worker, an upstream `u`, a route `all`, and its agents.
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

    /// The route's next agent, with these settings.
    pub(crate) fn agent(self, name: &str, agent: &FakeAgent, settings: &str) -> Self {
        self.agent_at(name, agent.path().to_str().unwrap(), settings)
    }

    /// The same, by the path of its socket.
    pub(crate) fn agent_at(mut self, name: &str, path: &str, settings: &str) -> Self {
        writeln!(
            self.agents,
            "agent \"{name}\" {{ unix-socket \"{path}\"; {settings} }}"
        )
        .unwrap();
        write!(self.names, " \"{name}\"").unwrap();
        self
    }

    /// The route's next agent, after an upstream of this name that is `target`.
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

    /// Settings of the route in place of its upstream.
    pub(crate) fn route(mut self, settings: &str) -> Self {
        settings.clone_into(&mut self.route);
        self
    }

    /// Further settings of the listener.
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

/// An agent that gets heads of requests alone.
pub(crate) fn head_agent(
    script: impl Fn(&RequestHeaders<'static>) -> AgentReply + Send + Sync + 'static,
) -> FakeAgent {
    FakeAgent::start(Wants::default(), move |event| match event {
        ProxyMessage::RequestHeaders(head) => script(head),
        _ => AgentReply::Silence,
    })
}

/// Allows, with these fields set in the request.
pub(crate) fn allow_with(fields: &[(&'static str, &'static str)]) -> AgentReply {
    let edits = fields
        .iter()
        .map(|(name, value)| HeaderEdit::set(*name, *value).unwrap());
    AgentReply::Decide(Decision::Allow(Allow {
        request_headers: edits.collect(),
        ..Allow::default()
    }))
}

/// The head of the `index`th event.
#[track_caller]
pub(crate) fn head(agent: &FakeAgent, index: usize) -> RequestHeaders<'static> {
    let events = agent.wait_for_events(index + 1);
    match &events[index] {
        ProxyMessage::RequestHeaders(head) => head.clone(),
        other => panic!("{other:?}"),
    }
}

/// The value of the first field with this name in an event.
pub(crate) fn field<'h>(head: &'h RequestHeaders<'static>, name: &str) -> Option<&'h str> {
    let field = head.headers.iter().find(|field| field.name() == name)?;
    field.value().to_str()
}

/// Asserts that `response` is an error response in JSON, and returns its message.
#[track_caller]
pub(crate) fn refusal(response: &Response, status: u16, code: &str) -> String {
    assert_eq!(response.status, status, "{}", response.text());
    let body = response.json();
    assert_eq!(body["error"]["code"], code, "{body}");
    body["error"]["message"].as_str().unwrap().to_owned()
}

/// The reason of a failed request, from its record in the access log.
#[track_caller]
pub(crate) fn reason(proxyd: &Proxyd, response: &Response) -> String {
    let record = proxyd.access_record(&response.correlation_id());
    record.text("reason").to_owned()
}

/// Value of the sample on the metrics page that begins with `name`; 0 if there is none.
#[track_caller]
pub(crate) fn metric(client: &mut RawClient, name: &str) -> f64 {
    let page = client.ask(proxy_testkit::get("/metrics", &[])).text();
    let line = page.lines().find(|line| line.starts_with(name));
    line.map_or(0.0, |line| {
        line.rsplit(' ').next().unwrap().parse().unwrap()
    })
}
