//! Explains the proxy's decision on a request under a bundle, without sending anything.

use super::diff::plan;
use super::{Checked, check};
use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use control_bundle::Files;
use control_domain::Refusal;
use control_wire::{BundleId, ProjectId};
use proxy_plan::{AssumeHealthy, ExplainError, ExplainRequest, render};
use serde_json::Value;
use std::net::IpAddr;

/// Maximum number of header fields in a question: the proxy's default limit.
const MAX_HEADERS: usize = 100;
const MAX_METHOD_CHARS: usize = 64;

/// A request to explain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestQuestion {
    /// The method, in upper case.
    pub method: String,
    /// A path, or an absolute `http` or `https` URL.
    pub url: String,
    /// Header fields; a `Host` field takes precedence over the URL's host.
    pub headers: Vec<(String, String)>,
    /// The client's address; `None` if it does not matter.
    pub client_ip: Option<IpAddr>,
    /// Name of the listener; `None` chooses one by the URL's port and scheme.
    pub listener: Option<String>,
}

impl App {
    /// Explains a request under a bundle, in the format of `proxyd explain --json`. All targets
    /// count as healthy.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Error::Definition`] for a request that cannot be sent.
    pub async fn explain_request(
        &self,
        call: &Call,
        project: ProjectId,
        id: BundleId,
        question: RequestQuestion,
    ) -> Result<Value, Error> {
        if MAX_METHOD_CHARS < question.method.chars().count() {
            return Err(Refusal::invalid("method", "is longer than 64 characters").into());
        }
        if MAX_HEADERS < question.headers.len() {
            return Err(Refusal::invalid("headers", "has more than 100 fields").into());
        }
        let bundle = self.bundle(call, project, id).await?.value;
        let files = self.contents(&bundle).await?.files;
        let explained = self.heavy(bundle.tenant.org, move || explain(&files, question));
        explained.await?
    }
}

fn explain(files: &Files, question: RequestQuestion) -> Result<Value, Error> {
    let Checked { model, .. } = check(files);
    // The bundle passed the checks of the release that signed it.
    let refused = Refusal::invalid("bundle", "is refused by this version of the checks");
    let plan = plan(&model.ok_or(refused)?);
    let RequestQuestion {
        method,
        url,
        headers,
        client_ip,
        listener,
    } = question;
    let request = ExplainRequest {
        method,
        url,
        headers,
        client_ip,
        listener,
    };
    let explained = request.ask(&plan, &AssumeHealthy::new(&plan));
    let explanation = explained.map_err(|error| Error::Definition {
        field: field(&error),
        reason: error.to_string(),
    })?;
    Ok(render::json(&explanation))
}

/// Name of the question's field that caused the error.
fn field(error: &ExplainError) -> &'static str {
    match error {
        ExplainError::Method(_) => "method",
        ExplainError::Url(_) => "url",
        ExplainError::Header(_) | ExplainError::TwoHosts | ExplainError::ContentLength(_) => {
            "headers"
        }
        ExplainError::Listener { .. } | ExplainError::Protocol { .. } => "listener",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_bundle::ENTRY_FILE;

    const TEXT: &str = r#"
        listeners { listener "http" { address "0.0.0.0:8080" } }
        routes {
            route "api" { matches { host "shop.example.com"; path-prefix "/api" }; upstream "cart" }
            route "rest" { upstream "cart" }
        }
        upstreams { upstream "cart" { target "10.4.0.11:8080" } }
    "#;

    fn ask(text: &str, url: &str, headers: &[(&str, &str)]) -> Result<Value, Error> {
        let files = [(ENTRY_FILE.to_owned(), text.as_bytes().to_vec())].into();
        let headers = headers.iter();
        let question = RequestQuestion {
            method: "GET".to_owned(),
            url: url.to_owned(),
            headers: headers
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..RequestQuestion::default()
        };
        explain(&files, question)
    }

    #[test]
    fn the_route_that_takes_a_request_is_named_with_its_line() {
        let reported = ask(TEXT, "http://shop.example.com/api/cart", &[]).unwrap();
        assert_eq!(reported["route"]["name"], "api");
        assert_eq!(reported["route"]["source"], "proxy.kdl:4");
        assert_eq!(reported["outcome"]["upstream"]["name"], "cart");
        assert_eq!(reported["rejected"][0]["name"], "rest");
    }

    #[test]
    fn a_wrong_field_of_a_question_is_named() {
        for (url, headers, expected) in [
            ("shop", &[][..], "url"),
            ("/", &[("Content-Length", "many")][..], "headers"),
        ] {
            let error = ask(TEXT, url, headers).unwrap_err();
            let Error::Definition { field, .. } = error else {
                panic!("{error:?}");
            };
            assert_eq!(field, expected);
        }
        let error = ask("limits { wrong 1 }", "/", &[]).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Refused(Refusal::Invalid {
                    field: "bundle",
                    ..
                })
            ),
            "{error:?}"
        );
    }
}
