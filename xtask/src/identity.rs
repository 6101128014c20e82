//! `cargo xtask identity`: sign-in in Chromium through identity providers of other projects, some
//! of them malicious.

use crate::fuzz_api::build;
use crate::setup;
use control_testkit::Database;
use serde_json::json;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;
use xtask_kit::workspace::Workspace;

/// The cases to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only cases with this in their name, such as `pysaml2` or `lies`
    #[arg(long, default_value = "")]
    only: String,
    /// Only on this database
    #[arg(long)]
    database: Option<DatabaseKind>,
}

/// A database of the cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DatabaseKind {
    Sqlite,
    Postgres,
}

impl DatabaseKind {
    fn create(self) -> Database {
        match self {
            Self::Sqlite => Database::sqlite(),
            Self::Postgres => Database::postgres(),
        }
    }
}

/// Runs the cases on SQLite with one replica, and on PostgreSQL with two, where the identity
/// provider's response arrives at the other replica.
///
/// # Errors
/// A case that failed, or a program that does not start.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<(), TaskError> {
    setup::for_identity(workspace)?;
    let controld = build(workspace)?;
    let target = workspace.target_dir()?;
    let mut failed = Vec::new();
    let kinds = match options.database {
        Some(kind) => vec![kind],
        None => vec![DatabaseKind::Sqlite, DatabaseKind::Postgres],
    };
    for database in kinds.into_iter().map(DatabaseKind::create) {
        say(format!("identity: on {}", database.kind));
        let settings = json!({
            "controld": controld,
            "database": database.url,
            "kind": database.kind,
            "replicas": if database.kind == "postgres" { 2 } else { 1 },
            "browser": target.join("browser"),
            "modules": target.join("identity"),
            "python": target.join("identity-python/bin/python"),
            "only": options.only,
        });
        let mut cases = workspace.command("node");
        cases
            .arg(workspace.root().join("fixtures/identity/run.mjs"))
            .arg(settings.to_string());
        if let Err(error) = command::run(&mut cases) {
            failed.push(format!("{}: {}", database.kind, error.message()));
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(TaskError::Failed(failed.join("; ")))
}
