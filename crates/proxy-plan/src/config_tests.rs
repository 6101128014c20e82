//! The tests inside a configuration, run on the plan that it compiles to.

use crate::decide::{Decision, Outcome};
use crate::explain::ExplainRequest;
use crate::plan::Plan;
use crate::targets::TargetRegistry;
use crate::upstream_states::AssumeHealthy;
use proxy_errors::Problem;
use proxy_model::{
    ConfigTest, Expectation, FailedTest, FileId, Model, Route, Service, Setting, Sources,
};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// Runs the tests of `model`, and returns those that fail, in file order. All targets count as
/// healthy; nothing is sent.
#[must_use]
pub fn failed_tests(model: &Model) -> Vec<FailedTest> {
    if model.tests.is_empty() {
        return Vec::new();
    }
    let model = Arc::new(model.clone());
    let plan = Plan::compile(
        1,
        Arc::clone(&model),
        &mut TargetRegistry::default().begin(),
    );
    let states = AssumeHealthy::new(&plan);
    let failed = model
        .tests
        .iter()
        .flat_map(|test| run(test, &plan, &states));
    failed.collect()
}

fn run(test: &ConfigTest, plan: &Plan, states: &AssumeHealthy) -> Vec<FailedTest> {
    let failure = |place, difference| FailedTest {
        name: test.name.clone(),
        place,
        request: test.request.place,
        difference,
        explain: command(test, &plan.model().sources),
    };
    let request = ExplainRequest {
        method: test.request.method.clone(),
        url: test.request.url.clone(),
        headers: test.request.headers.clone(),
        client_ip: test.request.client_ip,
        listener: test.request.listener.clone(),
    };
    // Not explained: the reasons of all other routes would cost as much as the file has routes.
    let differences = request.with_head(plan, |head| {
        let decision = plan.decide(head, states, Duration::ZERO);
        let decided = Decided {
            plan,
            decision: &decision,
        };
        let differences = test.expectations.iter().filter_map(|expected| {
            let place = expected.place().unwrap_or(test.place);
            Some(failure(place, decided.difference(expected)?))
        });
        differences.collect()
    });
    differences.unwrap_or_else(|error| vec![failure(test.request.place, error.to_string())])
}

/// The command that explains the decision on the test's request.
fn command(test: &ConfigTest, sources: &Sources) -> String {
    let request = &test.request;
    // The first source is the file that was given; those after it are included.
    let file = sources.name(FileId::default());
    let mut command = format!("proxyd explain --config {}", quoted(file));
    for (name, value) in &request.headers {
        let field = quoted(&format!("{name}: {value}"));
        // A `String` takes every text.
        _ = write!(command, " -H {field}");
    }
    if let Some(listener) = &request.listener {
        _ = write!(command, " --listener {}", quoted(listener));
    }
    if let Some(address) = request.client_ip {
        _ = write!(command, " --client-ip {address}");
    }
    _ = write!(command, " {} {}", request.method, quoted(&request.url));
    command
}

/// One word of a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A decision with the plan that has its names.
#[derive(Clone, Copy)]
struct Decided<'a> {
    plan: &'a Plan,
    decision: &'a Decision<'a>,
}

impl<'a> Decided<'a> {
    /// The difference between the expectation and the decision, if there is one.
    fn difference(self, expected: &Setting<Expectation>) -> Option<String> {
        let refusal = self.refusal();
        let (noun, found, wanted) = match &expected.value {
            Expectation::Route(name) => {
                let found = self.route().map(|route| route.id.clone());
                ("route", found, name.clone())
            }
            Expectation::Upstream(name) => ("upstream", self.upstream(), name.clone()),
            Expectation::Builtin(handler) => {
                ("built-in handler", self.builtin(), handler.to_string())
            }
            Expectation::Agents(names) => ("list of agents", self.agents(), names.join(" ")),
            Expectation::Status(status) => {
                let found = refusal.map(|problem| problem.status().as_u16().to_string());
                ("status of a refusal", found, status.to_string())
            }
            Expectation::Reason(reason) => {
                let found = refusal.map(|problem| problem.reason().as_str().to_owned());
                ("reason of a refusal", found, reason.as_str().to_owned())
            }
        };
        match found {
            Some(found) if found == wanted => None,
            Some(found) => Some(format!("the {noun} is `{found}`, not `{wanted}`")),
            None => Some(format!("there is no {noun}; {}", self.answer())),
        }
    }

    fn route(self) -> Option<&'a Route> {
        self.plan.model().routes.get(self.decision.route?.index)
    }

    fn refusal(self) -> Option<&'a Problem> {
        match &self.decision.outcome {
            Outcome::Refuse(problem) => Some(problem),
            Outcome::Forward(..) | Outcome::Answer(_) | Outcome::Files => None,
        }
    }

    fn upstream(self) -> Option<String> {
        match &self.decision.outcome {
            Outcome::Forward(upstream, _) => Some(upstream.name.to_string()),
            Outcome::Refuse(_) | Outcome::Answer(_) | Outcome::Files => None,
        }
    }

    fn builtin(self) -> Option<String> {
        match &self.decision.outcome {
            Outcome::Answer(handler) => Some(handler.to_string()),
            Outcome::Refuse(_) | Outcome::Forward(..) | Outcome::Files => None,
        }
    }

    /// The names of the agents in their order; `None` without agents.
    fn agents(self) -> Option<String> {
        let model = self.plan.model();
        let agents = self.route()?.agents.iter();
        let names = agents.filter_map(|index| Some(model.agent(index.value)?.name.as_str()));
        let names: Vec<&str> = names.collect();
        (!names.is_empty()).then(|| names.join(" "))
    }

    /// The root of the files that answer.
    fn root(self) -> String {
        match self.route().map(|route| &route.service) {
            Some(Service::Static(files)) => files.root.display().to_string(),
            Some(Service::Upstream(_) | Service::Builtin(_)) | None => String::new(),
        }
    }

    /// The answer to the request, as a clause.
    fn answer(self) -> String {
        match &self.decision.outcome {
            Outcome::Forward(upstream, _) => {
                format!("the request goes to upstream `{}`", upstream.name)
            }
            Outcome::Answer(handler) => format!("`{handler}` answers"),
            Outcome::Files => format!("files below `{}` answer", self.root()),
            Outcome::Refuse(problem) => format!(
                "the request is refused with {} ({})",
                problem.status().as_u16(),
                problem.reason().as_str()
            ),
        }
    }
}
