//! The route of a request in the active configuration, for a browser: `/?explain`, and with a URL its outcome.

use super::{STYLE, respond};
use crate::state::AdminState;
use askama::Template;
use axum::response::Response;
use proxy_plan::{ExplainRequest, Explanation, KnownHealth, render};
use serde::Deserialize;

/// A form by GET, so that its result has an address. It takes no header fields, which may be secrets and would stand in
/// that address.
const POLICY: &str = "form-action 'self'";

/// Parameters of the page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ExplainQuery {
    /// Present: the form without a request.
    explain: Option<String>,
    /// Present: the page without an explanation loads itself.
    pub(crate) reload: Option<String>,
    method: Option<String>,
    url: Option<String>,
    client_ip: Option<String>,
    listener: Option<String>,
}

#[derive(Template)]
#[template(path = "explain.html")]
struct ExplainPage<'a> {
    style: &'static str,
    heading: String,
    method: &'a str,
    url: &'a str,
    client_ip: &'a str,
    listener: &'a str,
    /// The explanation as `proxyd explain` prints it; empty without one.
    text: String,
    has_fault: bool,
}

impl ExplainQuery {
    /// Returns true if the request is for the page of explanations.
    pub(crate) fn is_present(&self) -> bool {
        self.explain.is_some() || self.url.is_some()
    }

    /// The page; a request that cannot be explained is its heading.
    pub(crate) fn show(&self, state: &AdminState) -> Response {
        let outcome = self.request().map(|request| {
            let request = request?;
            let plan = state.plan.load();
            let health = KnownHealth::new(&plan.plan);
            let explained = request.ask(&plan.plan, &health);
            explained.map_err(|error| error.to_string())
        });
        let (heading, text, has_fault) = match &outcome {
            None => (
                "Which route takes a request?".to_owned(),
                String::new(),
                false,
            ),
            Some(Ok(explained)) => (heading(explained), render::text(explained), false),
            Some(Err(fault)) => (format!("No explanation: {fault}."), String::new(), true),
        };
        let page = ExplainPage {
            style: STYLE,
            heading,
            method: given(self.method.as_ref()).unwrap_or("GET"),
            url: given(self.url.as_ref()).unwrap_or_default(),
            client_ip: given(self.client_ip.as_ref()).unwrap_or_default(),
            listener: given(self.listener.as_ref()).unwrap_or_default(),
            text,
            has_fault,
        };
        respond(&page, POLICY)
    }

    /// The request of the parameters; `None` without a URL.
    fn request(&self) -> Option<Result<ExplainRequest, String>> {
        let url = given(self.url.as_ref())?;
        let client_ip = given(self.client_ip.as_ref()).map(|address| {
            let parsed = address.parse();
            parsed.map_err(|_| format!("`{address}` is not an address"))
        });
        Some(client_ip.transpose().map(|client_ip| ExplainRequest {
            method: given(self.method.as_ref()).unwrap_or("GET").to_owned(),
            url: url.to_owned(),
            headers: Vec::new(),
            client_ip,
            listener: given(self.listener.as_ref()).map(str::to_owned),
        }))
    }
}

/// A parameter with a value.
fn given(value: Option<&String>) -> Option<&str> {
    let value = value.map(|value| value.trim());
    value.filter(|value| !value.is_empty())
}

fn heading(explained: &Explanation) -> String {
    let Explanation {
        method, host, path, ..
    } = explained;
    let request = format!("{method} {}{}", host.sent, path.sent);
    match &explained.winner {
        Some(winner) => format!("Route {} takes {request}.", winner.route.name),
        None => format!("No route takes {request}."),
    }
}
