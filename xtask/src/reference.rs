//! `cargo xtask reference`: generated pages in `docs/reference`.

use std::fs;
use std::path::Path;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;
use xtask_kit::workspace::Workspace;

/// A page and its generator.
struct Page {
    file: &'static str,
    generate: fn() -> String,
}

const PAGES: &[Page] = &[
    Page {
        file: "agent-protocol.schema.json",
        generate: agent_protocol::schema_json,
    },
    Page {
        file: "aliases.md",
        generate: proxy_config::reference::aliases_md,
    },
    Page {
        file: "config.md",
        generate: proxy_config::reference::config_md,
    },
    Page {
        file: "config.schema.json",
        generate: proxy_config::reference::schema_json,
    },
    Page {
        file: "config-faults.md",
        generate: proxy_config::reference::faults_md,
    },
    Page {
        file: "errors.md",
        generate: proxy_errors::reference_page,
    },
    Page {
        file: "circuit-breakers.md",
        generate: proxy_health::breaker_reference_page,
    },
    Page {
        file: "agent-outcomes.md",
        generate: proxy_agent::outcomes_page,
    },
    Page {
        file: "metrics.md",
        generate: proxy_telemetry::reference::metrics_md,
    },
    Page {
        file: "risks.md",
        generate: proxy_plan::diff::risks_page,
    },
];

/// Writes every page. With `check`, writes nothing and fails if a page is out of date.
pub(crate) fn run(workspace: &Workspace, check: bool) -> Result<(), TaskError> {
    let folder = workspace.root().join("docs/reference");
    let stale = stale(&folder, PAGES);
    if !check {
        write(&folder, &stale)?;
        return write_by_test(workspace);
    }
    if stale.is_empty() {
        say(format!("reference: {} pages up to date", PAGES.len()));
        return Ok(());
    }
    let files: Vec<&str> = stale.iter().map(|page| page.file).collect();
    Err(TaskError::Failed(format!(
        "out of date in docs/reference: {}; run `cargo xtask reference`",
        files.join(", ")
    )))
}

/// Runs the test that writes the control plane's pages. Generating them here would link its
/// database and its interface.
fn write_by_test(workspace: &Workspace) -> Result<(), TaskError> {
    let arguments = ["test", "--locked", "--workspace", "--test", "reference"];
    let mut test = workspace.cargo(&arguments);
    test.env("REFERENCE_WRITE", "1");
    command::run(&mut test)
}

fn stale<'a>(folder: &Path, pages: &'a [Page]) -> Vec<&'a Page> {
    pages
        .iter()
        .filter(|page| {
            let written = fs::read_to_string(folder.join(page.file));
            written.ok().as_deref() != Some((page.generate)().as_str())
        })
        .collect()
}

fn write(folder: &Path, pages: &[&Page]) -> Result<(), TaskError> {
    for page in pages {
        let path = folder.join(page.file);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, (page.generate)()))
            .map_err(|source| TaskError::File { path, source })?;
        say(format!("reference: wrote docs/reference/{}", page.file));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &[Page] = &[Page {
        file: "one.md",
        generate: || "# One\n".to_owned(),
    }];

    #[test]
    fn a_missing_page_is_stale_until_it_is_written() {
        let folder = tempfile::tempdir().unwrap();

        let found = stale(folder.path(), ONE);
        assert_eq!(found.len(), 1);
        write(folder.path(), &found).unwrap();
        assert!(stale(folder.path(), ONE).is_empty());
    }

    #[test]
    fn a_page_edited_by_hand_is_stale() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("one.md"), "# One, edited\n").unwrap();

        assert_eq!(stale(folder.path(), ONE).len(), 1);
    }
}
