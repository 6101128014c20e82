//! `proxyd explain`: the decision on a request, without sending it.

use crate::cli::Explain;
use crate::terminal::{print_error, print_line, print_report};
use proxy_plan::{
    AssumeHealthy, ExplainError, ExplainRequest, Explanation, Plan, TargetRegistry, render,
};
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

/// Prints the explanation. Exit code 1 for an invalid configuration, 2 for an impossible request.
pub(crate) fn run(explain: Explain) -> io::Result<ExitCode> {
    // Tests in the configuration are not run: a failed one may be the reason for this command.
    let loaded = match &explain.config {
        Some(file) => proxy_config::load(file),
        None => proxy_config::embedded(),
    };
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(report) => {
            print_report(&report);
            return Ok(ExitCode::FAILURE);
        }
    };
    let plan = Plan::compile(
        1,
        Arc::new(loaded.model),
        &mut TargetRegistry::default().begin(),
    );
    let json = explain.json;
    match ask(explain, &plan) {
        Ok(explanation) if json => print_line(render::json(&explanation))?,
        Ok(explanation) => print_line(render::text(&explanation).trim_end())?,
        Err(fault) => {
            print_error(format_args!("proxyd explain: {fault}"));
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn ask(explain: Explain, plan: &Plan) -> Result<Explanation, ExplainError> {
    let Explain {
        config: _,
        method,
        url,
        headers,
        listener,
        client_ip,
        json: _,
    } = explain;
    let headers = headers.iter().map(|line| ExplainRequest::header(line));
    let request = ExplainRequest {
        method,
        url,
        headers: headers.collect::<Result<_, _>>()?,
        client_ip,
        listener,
    };
    request.ask(plan, &AssumeHealthy::new(plan))
}
