//! Page at `/?explain`: the route that a request would take in the active configuration.

use super::{STYLE, respond};
use crate::state::AdminState;
use askama::Template;
use axum::response::Response;
use proxy_plan::{ExplainRequest, Explanation, KnownHealth, render};
use serde::Deserialize;

/// Permits the form, which sends its fields by GET, so that the result has an address. Header
/// fields cannot be entered: secrets among them would become part of that address.
const POLICY: &str = "form-action 'self'";

/// Query parameters of the page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ExplainQuery {
    /// If present without a URL, an empty form is shown.
    explain: Option<String>,
    /// If present on the status page, that page reloads itself.
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
    /// Text of `proxyd explain`; empty without an explanation.
    text: String,
    has_fault: bool,
}

impl ExplainQuery {
    /// Returns true if the parameters select this page instead of the status page.
    pub(crate) fn is_present(&self) -> bool {
        self.explain.is_some() || self.url.is_some()
    }

    /// Renders the page. An invalid request is reported in the heading.
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

    /// Parses the parameters; `None` without a URL.
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

/// Returns a parameter unless it is empty.
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
