//! `controld audit verify`: detects changed or removed entries of the audit log.

use crate::cli::VerifyArgs;
use crate::data_dir::DataDir;
use crate::error_text::error_text;
use crate::key_file::Secrets;
use crate::standard_output::print_line;
use crate::state::open_existing;
use control_app::{AuditArchive, AuditVerification};
use std::error::Error;
use std::process::ExitCode;

/// Prints the first changed or missing entry, or the newest link of the hash chain.
pub(crate) async fn verify(args: VerifyArgs) -> Result<ExitCode, Box<dyn Error>> {
    let VerifyArgs { state, archives } = args;
    let data_dir = DataDir::new(state);
    let app = open_existing(&data_dir, Secrets::Untouched).await?;
    let found = app.inspect_audit().await;
    let found = found.map_err(|error| {
        if let control_app::Error::Store(error) = &error {
            return data_dir.at_database(error);
        }
        error_text(&error)
    })?;
    let changed = if archives {
        app.verify_audit_archives()
            .await
            .map_err(|error| error_text(&error))?
    } else {
        None
    };
    app.close().await;
    if let Some(AuditArchive { object, .. }) = changed {
        print_line(format_args!(
            "the archive {object} of the audit log was changed, or is missing"
        ))?;
        return Ok(ExitCode::FAILURE);
    }
    let AuditVerification {
        fault,
        entries,
        archived,
        keyed_from,
        head,
    } = &found;
    if let Some(seq) = fault {
        print_line(format_args!(
            "entry {seq} of the audit log was changed, or is missing"
        ))?;
        return Ok(ExitCode::FAILURE);
    }
    match keyed_from {
        None if *entries == 0 => {
            print_line(format_args!("the audit log is complete: it has no entry"))?;
        }
        None => {
            print_line(format_args!(
                "no entry of the audit log has a key: start `controld` once to add one"
            ))?;
            return Ok(ExitCode::FAILURE);
        }
        Some(first) => {
            print_line(format_args!(
                "the audit log is complete: {entries} entries, keyed from entry {first}"
            ))?;
            if 0 < *archived {
                print_line(format_args!(
                    "entries 1 to {archived} are in archives of the object store"
                ))?;
            }
            print_line(format_args!(
                "keep the newest hash: it proves later that the log was not cut: {entries} {head}"
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
