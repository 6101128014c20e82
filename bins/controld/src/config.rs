//! Configuration file of `controld`: settings with the names of the command line's flags.
//!
//! Settings become the defaults of their flags: flags and environment variables override them, and
//! the flag's own parser reads their values. Every flag is a setting, except `--config`, `--help`
//! and `--version`.

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};
use kdl::{KdlDocument, KdlNode, KdlValue};
use miette::{Diagnostic, NamedSource, SourceSpan};
use std::fs;
use std::path::{Path, PathBuf};
use strsim::damerau_levenshtein;

/// Flags that cannot be settings.
const NOT_SETTINGS: &[&str] = &["config", "help", "version"];
const MAX_BYTES: u64 = 1024 * 1024;
/// Limit on the nesting of blocks, which no setting has: the KDL parser is recursive.
const MAX_BRACES: usize = 32;

#[derive(Debug)]
pub(crate) struct ConfigFile {
    source: NamedSource<String>,
    settings: Vec<Setting>,
}

/// One setting, with its position in the file.
#[derive(Debug)]
struct Setting {
    name: String,
    values: Vec<String>,
    span: SourceSpan,
}

/// All faults of a configuration file.
#[derive(Debug, Diagnostic, thiserror::Error)]
#[error("{} of the configuration", count(.faults.len()))]
pub(crate) struct ConfigError {
    #[source_code]
    source_code: NamedSource<String>,
    #[related]
    faults: Vec<ConfigFault>,
}

/// One fault, with its position.
#[derive(Debug, Diagnostic, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ConfigFault {
    message: String,
    #[label]
    span: SourceSpan,
    #[help]
    help: Option<String>,
}

impl ConfigFile {
    /// Reads the file that `--config` or the environment variable names; `None` without either.
    pub(crate) fn named_by(
        matches: &ArgMatches,
        flags: &Command,
    ) -> Result<Option<Self>, ConfigError> {
        let path = matches.get_one::<PathBuf>("config");
        path.map(|path| Self::read(path, flags)).transpose()
    }

    /// Reads a file of settings. `flags` defines the valid names and values.
    fn read(path: &Path, flags: &Command) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let unreadable = |cause: String| ConfigError {
            source_code: NamedSource::new(&name, String::new()),
            faults: vec![ConfigFault::new(cause, (0, 0).into())],
        };
        let size = fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
        if MAX_BYTES < size.len() {
            return Err(unreadable("is larger than 1 MiB".to_owned()));
        }
        let text = fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        Self::parse(&name, &text, flags)
    }

    fn parse(name: &str, text: &str, flags: &Command) -> Result<Self, ConfigError> {
        let source = NamedSource::new(name, text.to_owned());
        let fail = |faults| ConfigError {
            source_code: source.clone(),
            faults,
        };
        if MAX_BRACES < text.matches('{').count() {
            let message = "a configuration has no blocks".to_owned();
            return Err(fail(vec![ConfigFault::new(message, (0, 0).into())]));
        }
        let document: KdlDocument = text.parse().map_err(|error: kdl::KdlError| {
            let faults = error.diagnostics.iter().map(|one| ConfigFault {
                message: one
                    .message
                    .clone()
                    .unwrap_or_else(|| "is not KDL".to_owned()),
                span: one.span,
                help: one.help.clone(),
            });
            fail(faults.collect())
        })?;
        let (mut settings, mut faults): (Vec<Setting>, _) = (Vec::new(), Vec::new());
        for node in document.nodes() {
            match Setting::read(node, flags) {
                Err(fault) => faults.push(fault),
                Ok(setting) if settings.iter().any(|one| one.name == setting.name) => {
                    let message = format!("{} is set twice", setting.name);
                    faults.push(ConfigFault::new(message, setting.span));
                }
                Ok(setting) => settings.push(setting),
            }
        }
        if faults.is_empty() {
            Ok(Self { source, settings })
        } else {
            Err(fail(faults))
        }
    }

    /// Makes the settings the defaults of their flags.
    pub(crate) fn apply(&self, command: Command) -> Command {
        let given = |arg: &Arg| {
            let mut all = self.settings.iter();
            all.find(|setting| Some(setting.name.as_str()) == arg.get_long())
        };
        command
            .mut_args(|arg| match given(&arg) {
                Some(setting) => arg.default_values(setting.values.clone()),
                None => arg,
            })
            .mut_subcommands(|inner| match inner.get_name() {
                "ctl" => inner,
                _ => self.apply(inner),
            })
    }

    /// Creates an error at the setting `name`; `None` if the file does not contain it.
    pub(crate) fn fault(&self, name: &str, message: String) -> Option<ConfigError> {
        let mut all = self.settings.iter();
        let setting = all.find(|setting| setting.name == name)?;
        Some(ConfigError {
            source_code: self.source.clone(),
            faults: vec![ConfigFault::new(message, setting.span)],
        })
    }
}

impl ConfigFault {
    fn new(message: String, span: SourceSpan) -> Self {
        Self {
            message,
            span,
            help: None,
        }
    }
}

impl Setting {
    fn read(node: &KdlNode, flags: &Command) -> Result<Self, ConfigFault> {
        let name = node.name().value();
        let span = node.span();
        let flag = settings_of(flags).find(|flag| flag.get_long() == Some(name));
        let Some(flag) = flag else {
            let mut fault =
                ConfigFault::new(format!("{name} is not a setting"), node.name().span());
            fault.help = nearest(name, flags).map(|near| format!("did you mean `{near}`?"));
            return Err(fault);
        };
        let mut values = Vec::new();
        for entry in node.entries() {
            let wrong = |message: &str| ConfigFault::new(format!("{name} {message}"), entry.span());
            if entry.name().is_some() {
                return Err(wrong("has no properties"));
            }
            let value = match entry.value() {
                KdlValue::String(text) => text.clone(),
                KdlValue::Integer(number) => number.to_string(),
                KdlValue::Bool(truth) => truth.to_string(),
                KdlValue::Float(_) | KdlValue::Null => return Err(wrong("requires a text")),
            };
            read_by_flag(flags, name, &value)
                .map_err(|cause| wrong(&format!("{value}: {cause}")))?;
            values.push(value);
        }
        if node.children().is_some() {
            return Err(ConfigFault::new(format!("{name} has no block"), span));
        }
        let is_list = matches!(flag.get_action(), ArgAction::Append);
        let most = if is_list { usize::MAX } else { 1 };
        if values.is_empty() || most < values.len() {
            let message = match most {
                1 => format!("{name} requires one value"),
                _ => format!("{name} requires a value"),
            };
            return Err(ConfigFault::new(message, span));
        }
        Ok(Self {
            name: name.to_owned(),
            values,
            span,
        })
    }
}

/// Returns the flags that can be settings.
pub(crate) fn settings_of(flags: &Command) -> impl Iterator<Item = &Arg> {
    flags.get_arguments().filter(|flag| {
        let long = flag.get_long();
        long.is_some_and(|long| !NOT_SETTINGS.contains(&long))
    })
}

/// Parses a value with the flag's own parser.
fn read_by_flag(flags: &Command, long: &str, value: &str) -> Result<(), String> {
    let arguments = ["controld".to_owned(), format!("--{long}={value}")];
    let Err(error) = flags.clone().try_get_matches_from(arguments) else {
        return Ok(());
    };
    // Conflicts and missing flags are no fault of this value: they are found when all flags are
    // parsed.
    let is_invalid_value = matches!(
        error.kind(),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation
    );
    if !is_invalid_value {
        return Ok(());
    }
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    Err(first.rsplit(": ").next().unwrap_or_default().to_owned())
}

fn nearest(name: &str, flags: &Command) -> Option<String> {
    let names = settings_of(flags).filter_map(Arg::get_long);
    let near = names.map(|known| (damerau_levenshtein(name, known), known));
    let near = near.filter(|(distance, _)| *distance <= 3).min();
    near.map(|(_, known)| known.to_owned())
}

fn count(faults: usize) -> String {
    match faults {
        1 => "a fault".to_owned(),
        many => format!("{many} faults"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    fn faults(text: &str) -> Vec<(String, String)> {
        let read = ConfigFile::parse("controld.kdl", text, &Cli::command());
        let faults = read.err().map(|error| error.faults).unwrap_or_default();
        let lines = faults.into_iter().map(|fault| {
            let (start, length) = (fault.span.offset(), fault.span.len());
            let place = text.get(start..start + length).unwrap_or_default();
            (fault.message, place.to_owned())
        });
        lines.collect()
    }

    #[test]
    fn every_fault_is_reported_with_its_place() {
        let text = "lisen \"127.0.0.1:1\"\ndata-dir 1 2\nlisten \"here\"\ndatabase { a }\n\
                    master-key-file a=1\ntls-cert \"a\"\ntls-cert \"b\"\n";
        let found = faults(text);
        let expected = [
            ("lisen is not a setting", "lisen"),
            ("data-dir requires one value", "data-dir 1 2"),
            (
                "listen here: is not an IP address with a port, such as 127.0.0.1:8443",
                "\"here\"",
            ),
            ("database has no block", "database { a }"),
            ("master-key-file has no properties", "a=1"),
            ("tls-cert is set twice", "tls-cert \"b\""),
        ];
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(message, place)| (message.as_str(), place.trim()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_setting_is_the_default_of_its_flag() {
        let text = "listen \"127.0.0.9:9\"\ntrusted-proxies \"10.0.0.0/8\" \"::1/128\"\n";
        let file = ConfigFile::parse("a", text, &Cli::command()).unwrap();
        let parse = |arguments: &[&str]| {
            let command = file.apply(Cli::command());
            command.try_get_matches_from(arguments).unwrap()
        };
        let listen = |arguments: &[&str]| {
            let matches = parse(arguments);
            let listen = matches.get_one::<std::net::SocketAddr>("listen");
            listen.unwrap().to_string()
        };
        assert_eq!(listen(&["controld"]), "127.0.0.9:9");
        assert_eq!(
            listen(&["controld", "--listen", "127.0.0.1:1"]),
            "127.0.0.1:1"
        );
        let matches = parse(&["controld"]);
        let networks = matches.get_many::<ipnet::IpNet>("trusted_proxies");
        assert_eq!(networks.unwrap().count(), 2);
    }

    #[test]
    fn braces_beyond_measure_are_refused() {
        assert_eq!(faults(&"a {".repeat(10_000)).len(), 1);
    }
}
