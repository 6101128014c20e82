//! Reference page `docs/reference/ctl.md`, generated from the grammar.

use clap::{Arg, Command};
use std::fmt::Write as _;

const OPENING: &str = "\
# `controld ctl`

<!-- Written by `cargo xtask reference` from the command line's grammar; changes here are lost. -->

The whole interface of the control plane as commands: `controld ctl <noun> <verb>`. Each follows from an
operation of [the interface](api.md), which documents its fields and the required rights.

| topic | rule |
|---|---|
| server | `--url`, else `CONTROLD_URL`, else the URL stored by `ctl login`, else `http://127.0.0.1:8443` |
| key | the first line of `--key-file`, else `CONTROLD_API_KEY`, else the key stored by `ctl login` for this URL |
| trust | `--ca-file`, else `CONTROLD_CA_FILE`, else the file stored by `ctl login`: certificates in PEM to trust instead of the system's |
| `ctl login` | stores all three in `$XDG_CONFIG_HOME/controld/login.json` (mode 0600) after the server has accepted the key |
| output | `-o table`, `-o json`, or `-o id` with one id per line |
| exit code | 0 success; 1 refused or failed, with code, message and correlation id on standard error; 2 invalid command line |
| names | names are accepted instead of ids; `--org` and `--project` may be omitted if there is only one |
| values | `@FILE` reads a value from the file, `@-` from standard input; `-f FILE` has all fields as JSON; elements of a list are separated by commas or given by repeated flags |
| lists | all pages, or up to `--limit` items |
| repetition | a request answered with 429, 502, 503 or 504, and one whose answer was lost, is sent again up to three times, after `Retry-After` or a second, with the same `Idempotency-Key` |
| completions | `controld ctl completions bash` (or `zsh`, `fish`, `elvish`, `powershell`) prints a script |

`ctl apply -f FILE` takes a JSON object with a list for each noun, such as
`{\"upstreams\": [{\"name\": \"web\", …}], \"services\": [{\"name\": \"shop\", \"upstream\": \"web\", …}]}`. Missing
objects are created and different ones updated; `--prune` deletes objects that are missing in a list of the file, and
`--dry-run` only reports. `--prune` continues after a refusal (409), lists all of them, and ends with exit code 1: objects in use
stay. Certificates of managed certificates are skipped.

`ctl plan DIR` and `ctl deploy DIR` are [deployments from a repository](../operate/deploy.md). A folder
replaces the whole configuration of its nodes, so there is nothing to prune.
";

pub(crate) fn page(ctl: &Command) -> String {
    let mut page = OPENING.to_owned();
    for command in ctl.get_subcommands().filter(|one| !one.is_hide_set()) {
        let nested: Vec<&Command> = command.get_subcommands().collect();
        write!(page, "\n## {}\n", command.get_name()).unwrap_or_default();
        if nested.is_empty() {
            describe(&mut page, "", command);
        }
        for inner in nested {
            describe(&mut page, command.get_name(), inner);
        }
    }
    page
}

fn describe(page: &mut String, noun: &str, command: &Command) {
    let own = |arg: &&Arg| !arg.is_global_set() && arg.get_id() != "help";
    let (flags, subjects): (Vec<&Arg>, Vec<&Arg>) = command
        .get_arguments()
        .filter(own)
        .partition(|arg| arg.get_long().is_some());
    let mut usage = format!("ctl {noun} {}", command.get_name()).replace("  ", " ");
    for subject in subjects {
        write!(usage, " <{}>", name(subject)).unwrap_or_default();
    }
    let about = command.get_about().map(ToString::to_string);
    write!(page, "\n`{usage}`: {}\n", about.unwrap_or_default()).unwrap_or_default();
    if flags.is_empty() {
        return;
    }
    page.push_str("\n| flag | meaning |\n|---|---|\n");
    for flag in flags {
        let long = flag.get_long().unwrap_or_default();
        let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
        let values: Vec<String> = flag
            .get_possible_values()
            .iter()
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        let values = if values.is_empty() || !flag.get_action().takes_values() {
            String::new()
        } else {
            format!(" ({})", values.join(", "))
        };
        let help = help.replace('|', "\\|");
        writeln!(page, "| `--{long}` | {help}{values} |").unwrap_or_default();
    }
}

fn name(arg: &Arg) -> String {
    let names = arg.get_value_names().into_iter().flatten();
    names
        .map(ToString::to_string)
        .next()
        .unwrap_or_else(|| arg.get_id().to_string().to_uppercase())
}
