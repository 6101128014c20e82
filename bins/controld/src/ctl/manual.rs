//! `docs/reference/ctl.md`: every command with its flags, from the grammar itself.

use clap::{Arg, Command};
use std::fmt::Write as _;

const OPENING: &str = "\
# `controld ctl`

<!-- Written by `cargo xtask reference` from the command line's grammar; changes here are lost. -->

The whole interface of the control plane as commands: `controld ctl <noun> <verb>`. Each follows from an
operation of [the interface](api.md), which says what the fields mean and who may do it.

| | |
|---|---|
| server | `--url`, else `CONTROLD_URL`, else what `ctl login` kept, else `http://127.0.0.1:8443` |
| key | the first line of `--key-file`, else `CONTROLD_API_KEY`, else what `ctl login` kept for this URL |
| trust | `--ca-file`, else `CONTROLD_CA_FILE`, else what `ctl login` kept: certificates in PEM to trust instead of the system's |
| `ctl login` | keeps all three in `$XDG_CONFIG_HOME/controld/login.json` (mode 0600) once the server has accepted the key |
| output | `-o table`, `-o json`, or `-o id` with one id a line |
| exit code | 0 done; 1 refused or failed: code, message and correlation id on the standard error output; 2 a wrong command line |
| names | where an id is wanted, a name does too; `--org` and `--project` may be left out where there is one |
| values | `@FILE` is read from the file, `@-` from the standard input; `-f FILE` gives all fields as JSON; a list is given by commas or by repeating its flag |
| lists | are followed to their last page, or to `--limit` |
| repetition | a request that is answered with 429 or 503 is sent up to three times more, after `Retry-After`, under one `Idempotency-Key` |
| completions | `controld ctl completions bash` (or `zsh`, `fish`, `elvish`, `powershell`) prints a script |

`ctl apply -f FILE` takes a JSON object with a list for each noun, such as
`{\"upstreams\": [{\"name\": \"web\", …}], \"services\": [{\"name\": \"shop\", \"upstream\": \"web\", …}]}`. Missing
objects are created and different ones updated; `--prune` deletes those that a list of the file does not name, and
`--dry-run` only reports.

`ctl plan DIR` and `ctl deploy DIR` are [deployments from a repository](../operate/deploy.md). A folder replaces all that its nodes
run: nothing is left to prune.
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
