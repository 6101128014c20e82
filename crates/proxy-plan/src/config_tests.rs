//! The tests inside a configuration, run on the plan that it compiles to.

use crate::explain::{ExplainRequest, Explanation, Handler};
use crate::plan::Plan;
use crate::targets::TargetRegistry;
use crate::upstream_states::AssumeHealthy;
use proxy_errors::Problem;
use proxy_model::{
    BuiltinHandler, ConfigTest, Expectation, FailedTest, FileId, Model, Setting, Sources,
};
use std::fmt::Write;
use std::sync::Arc;

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
    let explanation = match request.ask(plan, states) {
        Ok(explanation) => explanation,
        Err(error) => return vec![failure(test.request.place, error.to_string())],
    };
    let differences = test.expectations.iter().filter_map(|expected| {
        let place = expected.place().unwrap_or(test.place);
        Some(failure(place, difference(expected, &explanation)?))
    });
    differences.collect()
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

/// The difference between the expectation and the decision, if there is one.
fn difference(expected: &Setting<Expectation>, explanation: &Explanation) -> Option<String> {
    let winner = explanation.winner.as_ref();
    let refusal = refusal(explanation);
    let (noun, found, wanted) = match &expected.value {
        Expectation::Route(name) => {
            let found = winner.map(|winner| winner.route.name.clone());
            ("route", found, name.clone())
        }
        Expectation::Upstream(name) => ("upstream", upstream(explanation), name.clone()),
        Expectation::Builtin(handler) => {
            let found = builtin(explanation).map(|found| found.to_string());
            ("built-in handler", found, handler.to_string())
        }
        Expectation::Agents(names) => ("list of agents", agents(explanation), names.join(" ")),
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
        None => Some(format!("there is no {noun}; {}", decided(explanation))),
    }
}

fn refusal(explanation: &Explanation) -> Option<&Problem> {
    match &explanation.answerer {
        Handler::Nobody { problem, .. } => Some(problem),
        Handler::Upstream { .. } | Handler::Builtin(_) | Handler::Files(_) => None,
    }
}

fn upstream(explanation: &Explanation) -> Option<String> {
    match &explanation.answerer {
        Handler::Upstream { upstream, .. } => Some(upstream.name.clone()),
        Handler::Nobody { .. } | Handler::Builtin(_) | Handler::Files(_) => None,
    }
}

fn builtin(explanation: &Explanation) -> Option<BuiltinHandler> {
    match &explanation.answerer {
        Handler::Builtin(handler) => Some(*handler),
        Handler::Nobody { .. } | Handler::Upstream { .. } | Handler::Files(_) => None,
    }
}

/// The names of the agents in their order; `None` without agents.
fn agents(explanation: &Explanation) -> Option<String> {
    let names: Vec<&str> = explanation
        .agents
        .iter()
        .map(|agent| agent.name.as_str())
        .collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// What was decided, as a clause.
fn decided(explanation: &Explanation) -> String {
    match &explanation.answerer {
        Handler::Upstream { upstream, .. } => {
            format!("the request goes to upstream `{}`", upstream.name)
        }
        Handler::Builtin(handler) => format!("`{handler}` answers"),
        Handler::Files(root) => format!("files below `{}` answer", root.name),
        Handler::Nobody { problem, .. } => format!(
            "the request is refused with {} ({})",
            problem.status().as_u16(),
            problem.reason().as_str()
        ),
    }
}
