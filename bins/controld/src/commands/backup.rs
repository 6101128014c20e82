//! `controld backup`: copies a SQLite database that is in use.

use crate::cli::BackupArgs;
use crate::data_dir::DataDir;
use crate::error_text::error_text;
use crate::key_file::Secrets;
use crate::standard_output::print_line;
use crate::state::open_existing;
use std::error::Error;
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::ExitCode;

/// Writes the copy. Never overwrites an existing file.
pub(crate) async fn run(args: BackupArgs) -> Result<ExitCode, Box<dyn Error>> {
    let BackupArgs { state, to } = args;
    let data_dir = DataDir::new(state);
    if !data_dir.database_url.starts_with("sqlite:") {
        return Err("use the backups of PostgreSQL: pg_dump".into());
    }
    if to.exists() {
        let remedy = "an existing file is never overwritten: name another one";
        return Err(format!("--to {}: exists already; {remedy}", to.display()).into());
    }
    let app = open_existing(&data_dir, Secrets::Untouched).await?;
    // Renamed when complete: until then, the copy may contain sessions.
    let mut part = to.clone().into_os_string();
    part.push(".part");
    let part = PathBuf::from(part);
    if part.exists() {
        fs::remove_file(&part)?;
    }
    // SQLite writes into an empty file, and keeps its mode.
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600);
    let failed = |error: &dyn Error| format!("--to {}: {}", to.display(), error_text(error));
    options.open(&part).map_err(|error| failed(&error))?;
    if let Err(error) = app.back_up(&part.display().to_string()).await {
        // The first error says more.
        fs::remove_file(&part).unwrap_or_default();
        return Err(failed(&error).into());
    }
    app.close().await;
    fs::rename(&part, &to)?;
    print_line(format_args!(
        "backup in {}; the key file {} is not in it",
        to.display(),
        data_dir.key_file.path().display()
    ))?;
    Ok(ExitCode::SUCCESS)
}
