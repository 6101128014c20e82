//! `cargo xtask canonical`: compares canonical XML of random documents with libxml2's.

use clap::Parser;
use control_sso::saml::{canonicalize, normal_line_ends};
use roxmltree::Document;
use std::fmt::Write;
use std::fs;
use std::process::ExitCode;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::{print_error, say};
use xtask_kit::workspace::Workspace;

/// An XML library on libxml2, from the Python package index.
const LXML: &str = "lxml>=6,<7";
/// Reads a line of prefixes and a line of XML with escaped `\n` and `\r`; writes canonical bytes in
/// hexadecimal, or `-` for a malformed document.
const PROGRAM: &str = r#"
import sys
from lxml import etree
lines = open(sys.argv[1], encoding="utf-8", newline="").read().split("\n")
for inclusive, text in zip(lines[0::2], lines[1::2]):
    text = text.replace("\\n", "\n").replace("\\r", "\r")
    try:
        root = etree.fromstring(text.encode(), etree.XMLParser(resolve_entities=False))
    except etree.XMLSyntaxError:
        print("-")
        continue
    apex = root.find(".//*[@apex]")
    apex = root if apex is None else apex
    tail, apex.tail = apex.tail, None
    out = etree.tostring(apex, method="c14n", exclusive=True, with_comments=False,
                         inclusive_ns_prefixes=inclusive.split())
    print(out.hex())
"#;
const URIS: &[&str] = &["urn:a", "urn:b", "http://www.w3.org/2000/09/xmldsig#"];
const PREFIXES: &[&str] = &["", "a", "b", "ds", "zz"];
const TEXTS: &[&str] = &[
    "x", " ", "\\n  ", "&amp;", "&lt;", "&gt;", "&#13;", "&#9;", "é", "𝄞", "&quot;", "'",
    "a\\r\\nb", "\\r",
];
const VALUES: &[&str] = &[
    "x", "", "&amp;", "&lt;", ">", "&#13;", "&#10;", "\\n", "  a  b ", "'", "\\r\\n",
];
const MAX_DEPTH: u32 = 5;
const MAX_REPORTED: usize = 5;

/// Compare canonical XML of random documents with that of libxml2
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask canonical")]
struct Options {
    /// Documents
    #[arg(long, default_value_t = 20_000)]
    count: u64,
    /// Repeats an earlier run
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

fn main() -> ExitCode {
    match compare(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(error.message());
            ExitCode::FAILURE
        }
    }
}

/// Compares the canonical bytes of `control-sso` with libxml2's.
///
/// # Errors
/// A document with other bytes.
fn compare(options: &Options) -> Result<(), TaskError> {
    let workspace = Workspace::find()?;
    let python = environment(&workspace)?;
    let folder = tempfile::tempdir().map_err(|source| TaskError::System {
        action: "make a folder",
        source,
    })?;
    let mut random = Random(options.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let cases: Vec<Case> = (0..options.count).map(|_| Case::new(&mut random)).collect();
    let lines = cases
        .iter()
        .flat_map(|case| [case.inclusive.join(" "), case.text.clone()]);
    let path = folder.path().join("documents");
    let lines = lines.collect::<Vec<_>>().join("\n");
    fs::write(&path, lines).map_err(|source| TaskError::File {
        path: path.clone(),
        source,
    })?;
    let mut program = workspace.command(&python);
    let answers = command::read(program.args(["-c", PROGRAM]).arg(&path))?;
    let mut compared = 0_u64;
    let mut faults = Vec::new();
    for (case, expected) in cases.iter().zip(answers.lines()) {
        let Some(own) = case.canonical() else {
            continue;
        };
        compared += u64::from(expected != "-");
        if expected != "-" && own != expected {
            faults.push(&case.text);
        }
    }
    for text in faults.iter().take(MAX_REPORTED) {
        say(format!("canonical: other bytes: {text}"));
    }
    say(format!(
        "canonical: {compared} documents compared, {} differ",
        faults.len()
    ));
    if compared < options.count / 2 || !faults.is_empty() {
        return Err(TaskError::Failed(
            "canonical bytes differ, or too few were compared".to_owned(),
        ));
    }
    Ok(())
}

/// The interpreter of an environment with lxml.
fn environment(workspace: &Workspace) -> Result<String, TaskError> {
    let folder = workspace.target_dir()?.join("lxml");
    let python = folder.join("bin/python");
    let works = command::works(
        workspace
            .command(&python.to_string_lossy())
            .args(["-c", "import lxml"]),
    );
    if !works {
        command::run(
            workspace
                .command("python3")
                .args(["-m", "venv"])
                .arg(&folder),
        )?;
        let pip = folder.join("bin/pip");
        let mut pip = workspace.command(&pip.to_string_lossy());
        command::run(pip.args(["install", "--quiet", LXML]))?;
    }
    Ok(python.to_string_lossy().into_owned())
}

/// A document in one line, and the inclusive prefixes.
struct Case {
    text: String,
    inclusive: Vec<&'static str>,
}

impl Case {
    fn new(random: &mut Random) -> Self {
        let mut apex = random.below(4);
        let text = element(random, 0, &[""], &mut apex);
        let inclusive = match random.below(3) {
            0 => vec!["a", "ds"],
            1 => vec!["b"],
            _ => Vec::new(),
        };
        Self { text, inclusive }
    }

    /// The canonical bytes in hexadecimal; `None` for a malformed document.
    fn canonical(&self) -> Option<String> {
        let text = self.text.replace("\\n", "\n").replace("\\r", "\r");
        let text = normal_line_ends(text.as_bytes()).ok()?;
        let document = Document::parse(&text).ok()?;
        let root = document.root_element();
        let mut all = root.descendants().skip(1);
        let apex = all.find(|node| node.has_attribute("apex"));
        let bytes = canonicalize(apex.unwrap_or(root), None, &self.inclusive);
        let mut hex = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            // Writing to a `String` cannot fail.
            _ = write!(hex, "{byte:02x}");
        }
        Some(hex)
    }
}

/// An element that declares, redeclares and uses prefixes; the one that decrements `apex` to 0 is
/// marked.
fn element(random: &mut Random, depth: u32, scope: &[&'static str], apex: &mut usize) -> String {
    let mut scope = scope.to_vec();
    let mut parts = Vec::new();
    for prefix in PREFIXES {
        if random.below(4) == 0 {
            let colon = if prefix.is_empty() { "" } else { ":" };
            let uri = if prefix.is_empty() && random.below(3) == 0 {
                ""
            } else {
                random.choose(URIS)
            };
            parts.push(format!("xmlns{colon}{prefix}=\"{uri}\""));
            scope.push(prefix);
        }
    }
    for name in ["k", "l", "Z", "aa"] {
        if random.below(3) == 0 {
            let prefix = random.choose(&scope);
            let colon = if prefix.is_empty() { "" } else { ":" };
            parts.push(format!(
                "{prefix}{colon}{name}=\"{}\"",
                random.choose(VALUES)
            ));
        }
    }
    if random.below(6) == 0 {
        parts.push("xml:lang=\"en\"".to_owned());
    }
    if *apex == 1 {
        parts.push("apex=\"1\"".to_owned());
    }
    *apex = apex.saturating_sub(1);
    let prefix = random.choose(&scope);
    let colon = if prefix.is_empty() { "" } else { ":" };
    let name = format!("{prefix}{colon}{}", random.choose(&["e", "f"]));
    let mut children = String::new();
    for _ in 0..random.below(5) {
        if depth < MAX_DEPTH && random.below(2) == 0 {
            children.push_str(&element(random, depth + 1, &scope, apex));
        } else {
            children.push_str(random.choose(TEXTS));
        }
    }
    let start = [vec![name.clone()], parts].concat().join(" ");
    format!("<{start}>{children}</{name}>")
}

/// xorshift64*
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap_or_default() % end.max(1)
    }

    fn choose(&mut self, all: &[&'static str]) -> &'static str {
        let index = self.below(all.len());
        all.get(index).copied().unwrap_or_default()
    }
}
