//! `cargo xtask site`: builds the documentation as a searchable website with mkdocs, in
//! `target/site`.
//!
//! The input of mkdocs is a copy of the pages and of the examples and source files that they link
//! to. Broken links, and pages in no section, are errors.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::Workspace;

/// Python environment of mkdocs, in the target folder.
pub(crate) const ENVIRONMENT: &str = "mkdocs";
/// Path of mkdocs in the environment.
pub(crate) const PROGRAM: &str = "bin/mkdocs";

/// Tracked files to copy, as git patterns. Files that they link to are copied too.
const SOURCES: [&str; 4] = ["README.md", "CHANGELOG.md", "docs", "examples"];

/// Sections of the navigation, with their folders or pages.
const SECTIONS: [(&str, &[&str]); 5] = [
    ("Learn", &["docs/learn/"]),
    ("Operate", &["docs/operate/", "examples/"]),
    ("Reference", &["docs/reference/", "CHANGELOG.md"]),
    (
        "Design",
        &["docs/", "crates/", "bench/", "package/", "xtask/"],
    ),
    ("Decisions", &["docs/decisions/"]),
];

const SETTINGS: &str = "\
site_name: proxyd and controld
docs_dir: source
site_dir: ../site
use_directory_urls: false
theme: {name: readthedocs, highlightjs: false, locale: en}
plugins: [search]
strict: true
validation: {omitted_files: warn, absolute_links: warn, unrecognized_links: warn, anchors: warn}
";

/// Builds the website.
pub(crate) fn run(workspace: &Workspace) -> Result<(), TaskError> {
    let target = workspace.target_dir()?;
    let work = target.join("site-source");
    let sources = sources(workspace)?;
    copy(workspace.root(), &work.join("source"), &sources)?;
    let settings = work.join("mkdocs.yml");
    write(&settings, &format!("{SETTINGS}{}", navigation(&sources)))?;
    let program = target.join(ENVIRONMENT).join(PROGRAM);
    let mut build = workspace.command(&program.to_string_lossy());
    command::run(
        build
            .args(["build", "--quiet", "--clean", "--config-file"])
            .arg(settings),
    )
}

/// Returns true if mkdocs is installed.
pub(crate) fn has_program(workspace: &Workspace) -> bool {
    let target = workspace.target_dir();
    target.is_ok_and(|target| target.join(ENVIRONMENT).join(PROGRAM).is_file())
}

fn sources(workspace: &Workspace) -> Result<Vec<String>, TaskError> {
    let mut list = Command::new("git");
    list.current_dir(workspace.root())
        .arg("ls-files")
        .args(SOURCES);
    let listed = list
        .output()
        .map_err(|error| failed("git ls-files", &error))?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut sources: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut seen: BTreeSet<String> = sources.iter().cloned().collect();
    let mut next = 0;
    while let Some(source) = sources.get(next).cloned() {
        next += 1;
        if is_page(&source) {
            let text = fs::read_to_string(workspace.root().join(&source));
            let text = text.map_err(|error| failed(&source, &error))?;
            let linked = links(&source, &text);
            let files = linked.filter(|path| workspace.root().join(path).is_file());
            sources.extend(files.filter(|path| seen.insert(path.clone())));
        }
    }
    Ok(sources)
}

fn is_page(path: &str) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|extension| extension == "md")
}

/// Returns the files that a page links to, relative to the workspace.
fn links<'t>(page: &'t str, text: &'t str) -> impl Iterator<Item = String> + 't {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let targets = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', '#']).next());
    let relative = targets.filter(|target| !target.is_empty() && !target.contains(':'));
    relative.map(move |target| {
        let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        for part in target.split('/') {
            match part {
                ".." => drop(parts.pop()),
                "." | "" => {}
                part => parts.push(part),
            }
        }
        parts.join("/")
    })
}

fn copy(root: &Path, folder: &Path, sources: &[String]) -> Result<(), TaskError> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| failed("the old copy", &error))?;
    }
    for source in sources {
        let to: PathBuf = folder.join(source);
        let parent = to.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|error| failed(source, &error))?;
        fs::copy(root.join(source), &to).map_err(|error| failed(source, &error))?;
    }
    Ok(())
}

/// Lists the pages of each section. A page belongs to the section with the longest matching folder.
fn navigation(sources: &[String]) -> String {
    let mut text = String::from("nav:\n  - README.md\n");
    for (section, _) in SECTIONS {
        _ = writeln!(text, "  - {section}:");
        let pages = sources
            .iter()
            .filter(|page| is_page(page) && *page != "README.md");
        for page in pages.filter(|page| section_of(page) == Some(section)) {
            _ = writeln!(text, "    - {page}");
        }
    }
    text
}

fn section_of(page: &str) -> Option<&'static str> {
    let folders = SECTIONS.iter().flat_map(|(section, folders)| {
        let own = folders.iter().filter(|folder| page.starts_with(**folder));
        own.map(|folder| (folder.len(), *section))
    });
    folders.max().map(|(_, section)| section)
}

fn write(path: &Path, text: &str) -> Result<(), TaskError> {
    fs::write(path, text).map_err(|error| failed(&path.to_string_lossy(), &error))
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> TaskError {
    TaskError::Failed(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_is_in_the_section_of_its_longest_folder() {
        let cases = [
            ("docs/architecture.md", Some("Design")),
            ("docs/operate/access.md", Some("Operate")),
            ("docs/decisions/README.md", Some("Decisions")),
            ("CHANGELOG.md", Some("Reference")),
            ("crates/a/README.md", Some("Design")),
        ];
        for (page, section) in cases {
            assert_eq!(section_of(page), section, "{page}");
        }
    }

    #[test]
    fn links_are_read_from_the_folder_of_their_page() {
        let text = "[a](../../examples/a.kdl#x) [b](b.md) [c](https://a.test/) [d](#d)";
        let found: Vec<String> = links("docs/operate/page.md", text).collect();
        assert_eq!(found, ["examples/a.kdl", "docs/operate/b.md"]);
    }
}
