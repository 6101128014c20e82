//! Manual pages, from the help of the programs.

use crate::product::{Build, Product};
use std::process::Command;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;

/// Columns of a line of help.
const COLUMNS: usize = 78;
/// Levels of commands with a section: `proxyd`, `proxyd config`, `proxyd config check`.
const LEVELS: usize = 3;

/// The page in roff, with the help of each command.
pub(crate) fn page(build: &Build<'_>) -> Result<String, TaskError> {
    let Product {
        name,
        summary,
        description,
        ..
    } = build.product;
    let version = &build.version;
    let seconds = format!("@{}", build.epoch);
    let date = command::read(Command::new("date").args(["-u", "-d", &seconds, "+%Y-%m-%d"]))?;
    let title = name.to_uppercase();
    let mut page = format!(
        ".TH {title} 8 \"{}\" \"{name} {version}\" \"System Administration\"\n\
         .SH NAME\n{name} \\- {summary}\n",
        date.trim()
    );
    add(&mut page, &[name], build)?;
    let files = format!(
        ".SH FILES\n.TP\n.I /etc/{name}/{name}.kdl\nThe configuration of the service.\n\
         .SH NOTES\n{description}\n"
    );
    page.push_str(&files);
    Ok(page)
}

/// Adds the section of the command `path`, and the sections of its commands.
fn add(page: &mut String, path: &[&str], build: &Build<'_>) -> Result<(), TaskError> {
    let arguments: Vec<&str> = path.iter().skip(1).copied().chain(["--help"]).collect();
    let help = build.output(&arguments)?;
    let title = path.join(" ").to_uppercase();
    page.push_str(&[".SH ", &title, "\n.nf\n"].concat());
    for line in help.lines().flat_map(wrap) {
        page.push_str(&roff(&line));
        page.push('\n');
    }
    page.push_str(".fi\n");
    if path.len() < LEVELS {
        for name in commands(&help) {
            add(page, &[path, &[name]].concat(), build)?;
        }
    }
    Ok(())
}

/// The commands that a help lists, without `help` itself.
fn commands(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = lines.take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}

/// Breaks a line at its words; further lines have its indentation.
fn wrap(line: &str) -> Vec<String> {
    let indent = " ".repeat(line.len() - line.trim_start().len());
    let mut lines = Vec::new();
    let mut current = indent.clone();
    for word in line.trim_start().split(' ') {
        let is_fresh = current.len() == indent.len();
        if !is_fresh && current.len() + 1 + word.len() > COLUMNS {
            lines.push(std::mem::replace(&mut current, indent.clone()));
        } else if !is_fresh {
            current.push(' ');
        }
        current.push_str(word);
    }
    lines.push(current);
    lines
}

/// A line as roff prints it literally.
fn roff(line: &str) -> String {
    let escaped = line.replace('\\', "\\e").replace('-', "\\-");
    if escaped.starts_with(['.', '\'']) {
        format!("\\&{escaped}")
    } else {
        escaped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_help_are_those_of_its_list() {
        let help = "About\n\nCommands:\n  check  Checks\n  help   Help\n\nOptions:\n  -h\n";
        assert_eq!(commands(help), ["check"]);
        assert_eq!(commands("About\n\nOptions:\n  -h\n"), [""; 0]);
    }

    #[test]
    fn a_long_line_is_broken_at_its_words_and_keeps_its_indentation() {
        let lines = wrap(&format!("    {}", "word ".repeat(30).trim_end()));
        assert!(lines.len() == 2 && lines.iter().all(|line| line.len() <= COLUMNS));
        assert!(lines.iter().all(|line| line.starts_with("    word")));
        assert_eq!(wrap(""), [""]);
    }

    #[test]
    fn roff_prints_a_line_as_it_is() {
        assert_eq!(roff(".x --a \\n"), "\\&.x \\-\\-a \\en");
    }
}
