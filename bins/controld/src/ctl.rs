//! `controld ctl`: commands for all operations of the HTTP interface.

mod apply;
mod client;
mod deploy;
mod error;
mod files;
mod grammar;
mod lookup;
mod operation;
mod output;
mod rollout;
mod run;
mod settings;
mod value;

use crate::ctl::error::CtlError;
use crate::ctl::operation::Operation;
use crate::ctl::output::report;
use clap::{ArgMatches, Command};
use control_api::ROUTES;
use std::process::ExitCode;

/// Derives the operations from the interface's description.
pub(crate) fn operations() -> Vec<Operation> {
    operation::operations(&control_api::description(), ROUTES)
}

/// Builds the grammar of the commands.
pub(crate) fn command(operations: &[Operation]) -> Command {
    grammar::command(operations)
}

/// Runs a parsed command, and prints its error.
pub(crate) async fn run(
    operations: &[Operation],
    matches: &ArgMatches,
    command: &mut Command,
) -> ExitCode {
    let done: Result<(), CtlError> = run::run(operations, matches, command).await;
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&format!("error: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ctl::operation::is_client_route;
    use std::collections::BTreeSet;

    #[test]
    fn each_client_route_has_exactly_one_command() {
        let operations = operations();
        let mut commands = BTreeSet::new();
        for operation in &operations {
            let command = (operation.noun.clone(), operation.verb.clone());
            assert!(commands.insert(command), "{operation:?} is two commands");
            assert!(!operation.verb.is_empty(), "{operation:?} has no verb");
            assert!(!operation.about.is_empty(), "{operation:?} says nothing");
        }
        for route in ROUTES {
            let path = format!("/api/v1{}", route.path);
            let own = operations
                .iter()
                .filter(|one| one.method == route.method && one.path == path);
            let expected = usize::from(is_client_route(route));
            assert_eq!(own.count(), expected, "{} {path}", route.method);
        }
    }

    #[test]
    fn the_clap_command_is_valid() {
        // Panics if two flags have the same name, or a required argument follows an optional one.
        command(&operations()).debug_assert();
    }
}
