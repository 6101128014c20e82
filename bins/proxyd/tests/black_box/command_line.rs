//! Commands of the program, and their exit codes.

use crate::support::{BINARY, Config};
use proxy_testkit::{Launch, RawClient, Upstream, get};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const GOOD: &str = r#"
listeners { listener "main" { address "127.0.0.1:8080" } }
routes { route "all" { upstream "app" } }
upstreams { upstream "app" { target "127.0.0.1:3000" } }
"#;

const DOUBTFUL: &str = r#"
listeners { listener "main" { address "127.0.0.1:8080" } }
routes { route "all" { upstream "app" } }
upstreams {
    upstream "app" { target "127.0.0.1:3000" }
    upstream "spare" { target "127.0.0.1:3001" }
}
"#;

const FAULTY: &str = r#"listeners { listener "main" { address "127.0.0.1:8080" } }
routes {
    route "a" { upstream "ap" }
    route "a" { upstream "app"; matches { path-regex "(" } }
}
upstreams { upstream "app" { target "127.0.0.1:3000"; load-balancing "round_robbin" } }
"#;

struct ConfigFolder(tempfile::TempDir);

impl ConfigFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

fn command() -> Command {
    let mut command = Command::new(BINARY);
    command.env_remove("PROXYD_CONFIG").env_remove("RUST_LOG");
    command
}

fn run(arguments: &[&str]) -> Output {
    command().args(arguments).output().unwrap()
}

fn run_with(arguments: &[&str], file: &Path) -> Output {
    command().args(arguments).arg(file).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn version_is_semantic_and_names_the_build() {
    let output = run(&["--version"]);

    assert_eq!(output.status.code(), Some(0));
    let printed = text(&output.stdout);
    let version = env!("CARGO_PKG_VERSION");
    assert!(
        printed.starts_with(&format!("proxyd {version}")),
        "{printed}"
    );
    assert_eq!(version.split('.').count(), 3);
}

#[test]
fn a_first_configuration_is_valid_serves_and_is_never_written_over() {
    let upstream = Upstream::saying("hello");
    let folder = ConfigFolder::new();
    let file = folder.0.path().join("first.kdl");
    let target = format!("--target={}", upstream.address());
    let flags = [
        "init",
        &target,
        "--host=a.test",
        "--listen=127.0.0.1:0",
        "--health-path=/",
    ];
    let output = run_with(&flags, &file);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let written = fs::read_to_string(&file).unwrap();
    let proxyd = Launch::new(BINARY, &written.replace(":9090", ":0")).start();
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hello");
    let other = b"GET / HTTP/1.1\r\nHost: b.test\r\n\r\n";
    assert_eq!(proxyd.connect().ask(other).status, 404);

    let output = run_with(&flags, &file);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_to_string(&file).unwrap(), written);
}

#[test]
fn a_first_configuration_with_a_bad_argument_is_not_written() {
    let folder = ConfigFolder::new();
    let file = folder.0.path().join("first.kdl");
    let output = run_with(&["init", "--target=nowhere at all"], &file);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("nowhere at all"));
    assert!(!file.exists());
    let flags = ["init", "--target=127.0.0.1:3000", "--cert=a.pem"];
    assert_eq!(run_with(&flags, &file).status.code(), Some(2));
    let flags = [&flags[..], &["--key=a.key"]].concat();
    let output = run_with(&flags, &file);
    assert_eq!(output.status.code(), Some(1), "there is no certificate");
    assert!(text(&output.stderr).contains("a.pem"));
    assert!(!file.exists());
    let issued = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap();
    fs::write(folder.0.path().join("a.pem"), issued.cert.pem()).unwrap();
    fs::write(
        folder.0.path().join("a.key"),
        issued.signing_key.serialize_pem(),
    )
    .unwrap();
    let output = run_with(&flags, &file);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let written = fs::read_to_string(&file).unwrap();
    assert!(written.contains("0.0.0.0:443") && written.contains("key-file"));
}

#[test]
fn a_first_configuration_with_a_malformed_health_path_is_not_written() {
    let folder = ConfigFolder::new();
    let file = folder.0.path().join("first.kdl");
    let flags = ["init", "--target=127.0.0.1:3000", "--health-path=/%zz"];
    assert_eq!(run_with(&flags, &file).status.code(), Some(1));
    assert!(!file.exists());
}

#[test]
fn each_shell_has_a_script_that_completes_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let script = text(&output.stdout);
        for word in ["proxyd", "explain", "migrate", "verbose"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn a_valid_configuration_passes_the_test() {
    let folder = ConfigFolder::new();
    let file = folder.file("good.kdl", GOOD);

    for flags in [
        &["--test", "--config"],
        &["--validate", "--config"],
        &["-t", "-c"],
    ] {
        let output = run_with(flags, &file);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let expected = format!("configuration file {} test is successful", file.display());
        assert!(
            text(&output.stdout).contains(&expected),
            "{}",
            text(&output.stdout)
        );
    }
    let output = run_with(&["config", "check"], &file);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn all_faults_are_reported_at_once_with_their_places() {
    let folder = ConfigFolder::new();
    let file = folder.file("faulty.kdl", FAULTY);

    for flags in [
        &["--test", "--config"][..],
        &["config", "check"],
        &["--config"],
    ] {
        let output = run_with(flags, &file);
        assert_eq!(output.status.code(), Some(1), "{flags:?}");
        let printed = text(&output.stderr);
        for part in [
            "faulty.kdl:3:",
            "faulty.kdl:4:",
            "faulty.kdl:6:",
            "did you mean \"app\"",
            "did you mean `round_robin`",
        ] {
            assert!(printed.contains(part), "{part} is not in:\n{printed}");
        }
    }
}

#[test]
fn warnings_do_not_fail_unless_they_are_to() {
    let folder = ConfigFolder::new();
    let file = folder.file("doubtful.kdl", DOUBTFUL);

    for (flags, code) in [
        (&["--test", "--config"][..], 0),
        (&["config", "check"], 0),
        (&["config", "check", "--strict"], 1),
    ] {
        let output = run_with(flags, &file);
        assert_eq!(output.status.code(), Some(code), "{flags:?}");
        assert!(
            text(&output.stderr).contains("spare"),
            "{}",
            text(&output.stderr)
        );
    }
}

#[test]
fn a_strict_check_fails_on_warnings() {
    let folder = ConfigFolder::new();
    let file = folder.file("doubtful.kdl", DOUBTFUL);
    let printed = text(&run_with(&["config", "check", "--strict"], &file).stderr);
    assert!(
        printed.contains("--strict takes warnings for faults"),
        "{printed}"
    );
}

#[test]
fn an_empty_file_is_doubtful() {
    let folder = ConfigFolder::new();
    let output = run_with(&["--test", "--config"], &folder.file("empty.kdl", ""));
    assert_eq!(output.status.code(), Some(0));
    let printed = text(&output.stderr);
    assert!(printed.contains("warning[nothing-served]"), "{printed}");
}

#[test]
fn more_connections_than_files_are_doubtful() {
    let folder = ConfigFolder::new();
    let file = folder.file("good.kdl", GOOD);
    let mut few = Command::new("sh");
    let script = "ulimit -n 1000; exec \"$0\" --test --config \"$1\"";
    let output = few
        .args(["-c", script, BINARY])
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let printed = text(&output.stderr);
    assert!(printed.contains("set it to 900 or less"), "{printed}");
}

#[test]
fn a_token_that_is_none_fails_the_test_as_it_would_the_start() {
    let folder = ConfigFolder::new();
    folder.file("short.token", "short");
    let admin = "admin { address \"127.0.0.1:0\"; token-file \"short.token\" }";
    let file = folder.file("good.kdl", &format!("{GOOD}{admin}\n"));

    for flags in [&["--test", "--config"][..], &["--config"]] {
        let output = run_with(flags, &file);
        assert_eq!(output.status.code(), Some(1), "{flags:?}");
        let printed = text(&output.stderr);
        for part in ["error[bad-token]", "16 is the least", "good.kdl:5:43"] {
            assert!(printed.contains(part), "{part} is not in:\n{printed}");
        }
    }
}

#[test]
fn findings_are_available_as_json() {
    let folder = ConfigFolder::new();
    let file = folder.file("faulty.kdl", FAULTY);

    let output = run_with(&["config", "check", "--json"], &file);

    assert_eq!(output.status.code(), Some(1));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = found.to_string();
    assert!(
        text.contains("round_robbin") && text.contains("faulty.kdl"),
        "{text}"
    );
}

#[test]
fn a_test_with_verbose_shows_the_effective_settings() {
    let folder = ConfigFolder::new();
    let file = folder.file("good.kdl", GOOD);

    let output = run_with(&["--test", "--verbose", "--config"], &file);

    assert_eq!(output.status.code(), Some(0));
    let printed = text(&output.stdout);
    for part in ["max-header-size-bytes", "8192", "127.0.0.1:3000", "default"] {
        assert!(printed.contains(part), "{part} is not in:\n{printed}");
    }
}

#[test]
fn a_test_with_verbose_shows_the_most_memory_that_may_be_taken() {
    let folder = ConfigFolder::new();
    let limits = "worker-threads 2\nlimits { max-memory-bytes \"512MiB\" }";
    let file = folder.file("good.kdl", &format!("{GOOD}{limits}\n"));

    let output = run_with(&["--test", "--verbose", "--config"], &file);

    assert_eq!(output.status.code(), Some(0));
    let printed = text(&output.stdout);
    for part in [
        "memory, at the worst",
        "connections",
        "together",
        "536870912 bytes",
    ] {
        assert!(printed.contains(part), "{part} is not in:\n{printed}");
    }
    let printed = text(&output.stderr);
    assert!(
        printed.contains("warning[memory-beyond-limit]"),
        "{printed}"
    );
    let little = "worker-threads 2\nlimits { max-memory-bytes \"512MiB\"; max-total-connections 100; \
        max-in-flight-requests 100; max-queued-requests 10 }";
    let file = folder.file("small.kdl", &format!("{GOOD}{little}\n"));
    let output = run_with(&["--test", "--config"], &file);
    assert!(!text(&output.stderr).contains("memory-beyond-limit"));
}

#[test]
fn wrong_usage_ends_with_2() {
    for arguments in [
        &["--nonsense"][..],
        &["--verbose"],
        &["config"],
        &["config", "check"],
        &["config", "migrate", "a.kdl"],
        &["explain"],
        &["--test", "config", "check", "a.kdl"],
    ] {
        let output = run(arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_file_that_is_not_there_ends_with_1() {
    for arguments in [
        &["--test", "--config", "no-such.kdl"][..],
        &["--config", "no-such.kdl"],
        &["config", "check", "no-such.kdl"],
        &[
            "config",
            "migrate",
            "no-such.kdl",
            "-o",
            "never-written.kdl",
        ],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(
            text(&output.stderr).contains("no-such.kdl"),
            "{arguments:?}"
        );
    }
}

#[test]
fn the_environment_may_name_the_configuration() {
    let folder = ConfigFolder::new();
    let (good, faulty) = (
        folder.file("good.kdl", GOOD),
        folder.file("faulty.kdl", FAULTY),
    );

    let test = |file: &Path| {
        let mut command = command();
        command
            .arg("--test")
            .env("PROXYD_CONFIG", file)
            .output()
            .unwrap()
    };
    assert_eq!(test(&good).status.code(), Some(0));
    assert_eq!(test(&faulty).status.code(), Some(1));

    let mut command = command();
    command
        .args(["--test", "--config"])
        .arg(&good)
        .env("PROXYD_CONFIG", &faulty);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "the flag counts more");
}

#[test]
fn a_port_in_use_is_reported_with_its_place() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let upstream = Upstream::saying("");

    let mut proxyd = Launch::new(BINARY, &Config::to(&upstream).at(address).kdl()).spawn();

    assert_eq!(proxyd.wait().code(), Some(1));
    let _ = proxyd.stderr().try_find(0, |_| false);
    let printed = proxyd.stderr().lines().join("\n");
    assert!(printed.contains("in use"), "{printed}");
    assert!(printed.contains("proxyd.kdl:2:"), "{printed}");
    assert!(printed.contains(&address.to_string()), "{printed}");
}

/// Returns the error of a process that cannot start with `blocks`.
fn error_of(blocks: &str) -> String {
    let upstream = Upstream::saying("");
    let config = Config::to(&upstream).top(blocks);
    let mut proxyd = Launch::new(BINARY, &config.kdl()).spawn();
    assert_eq!(proxyd.wait().code(), Some(1));
    let _ = proxyd.stderr().try_find(0, |_| false);
    proxyd.stderr().lines().join("\n")
}

#[test]
fn an_address_that_cannot_be_opened_is_reported_with_its_place() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let in_use = taken.local_addr().unwrap();
    let free = "admin { address \"127.0.0.1:0\" }";
    for (blocks, code) in [
        (
            format!("admin {{ address \"{in_use}\" }}"),
            "error[address-in-use]",
        ),
        (
            "admin { address \"127.0.0.1:0\"; unix-socket \"/dev/null\" }".to_owned(),
            "error[cannot-listen]",
        ),
        (
            format!("{free}\nobservability {{ access-log {{ path \"/\" }} }}"),
            "error[unwritable-log]",
        ),
    ] {
        let printed = error_of(&blocks);
        assert!(printed.contains(code), "{code} is not in:\n{printed}");
        let line = blocks.lines().last().unwrap();
        assert!(printed.contains(line), "{line} is not in:\n{printed}");
    }
}

#[test]
fn another_proxyd_s_port_is_in_use_too() {
    let upstream = Upstream::saying("first");
    let first = Config::to(&upstream).start();

    let config = Config::to(&upstream).at(first.address());
    let mut second = Launch::new(BINARY, &config.kdl()).spawn();

    assert_eq!(second.wait().code(), Some(1));
    assert_eq!(first.connect().ask(get("/", &[])).text(), "first");
}

#[test]
fn a_test_binds_nothing() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = ConfigFolder::new();
    let file = folder.file("taken.kdl", &GOOD.replace("127.0.0.1:8080", &address));

    let output = run_with(&["--test", "--config"], &file);

    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn a_configuration_is_migrated_with_its_comments() {
    let folder = ConfigFolder::new();
    let old = GOOD.replace(
        r#"target "127.0.0.1:3000""#,
        "// slow on Mondays\n        target \"127.0.0.1:3000\"\n        timeout-secs 7\n    ",
    );
    let file = folder.file("old.kdl", &old);
    let out = folder.0.path().join("new.kdl");

    let warned = run_with(&["config", "check"], &file);
    assert!(
        text(&warned.stderr).contains("timeouts"),
        "{}",
        text(&warned.stderr)
    );
    let mut migrate = command();
    let output = migrate
        .args(["config", "migrate"])
        .arg(&file)
        .arg("-o")
        .arg(&out)
        .output();

    assert_eq!(output.unwrap().status.code(), Some(0));
    let new = fs::read_to_string(&out).unwrap();
    assert!(
        new.contains("// slow on Mondays") && new.contains("request-secs 7"),
        "{new}"
    );
    assert!(!new.contains("timeout-secs"), "{new}");
    let checked = run_with(&["config", "check", "--strict"], &out);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
}

#[test]
fn a_migration_names_the_requests_that_another_route_takes_now() {
    let folder = ConfigFolder::new();
    let routes = "routes {
        route \"all\" { matches { path-prefix \"/\" }; upstream \"app\" }
        route \"shop\" { matches { host \"shop.test\" }; upstream \"app\" }
    }";
    folder.file("routes.kdl", routes);
    let upstreams = "upstreams { upstream \"app\" { target \"127.0.0.1:3000\" } }";
    let file = folder.file("old.kdl", &format!("include \"routes.kdl\"\n{upstreams}\n"));
    let mut migrate = command();
    let output = migrate
        .args(["config", "migrate"])
        .arg(&file)
        .arg("-o")
        .arg(folder.0.path().join("new.kdl"))
        .output()
        .unwrap();

    let printed = text(&output.stdout);
    assert!(
        printed
            .contains("routes.kdl:3: requests for host \"shop.test\" and path-prefix \"/\" go to")
            && printed.contains("route \"shop\" now, to route \"all\" before"),
        "{printed}"
    );
}

#[test]
fn explain_names_the_route_of_a_request() {
    let folder = ConfigFolder::new();
    let file = folder.file("good.kdl", GOOD);

    let mut explain = command();
    let output = explain
        .args(["explain", "--config"])
        .arg(&file)
        .args(["GET", "http://a.test/x", "--json"])
        .output()
        .unwrap();

    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(printed.to_string().contains("\"all\""), "{printed}");
}

#[test]
fn without_a_configuration_a_page_is_served_on_8080() {
    // Common ports, which another process may use.
    let free = |port: u16| TcpListener::bind(("0.0.0.0", port)).is_ok();
    if !free(8080) || !free(9090) {
        return;
    }
    let mut proxyd = Launch::without_configuration(BINARY).start();

    let mut client = RawClient::connect(([127, 0, 0, 1], 8080).into());
    let page = client.ask(get("/", &[]));
    assert_eq!(page.status, 200);
    assert!(page.text().contains("<title>"));
    assert_eq!(client.ask(get("/health", &[])).json()["status"], "healthy");
    assert_eq!(client.ask(get("/other", &[])).status, 404);
    let advice = proxyd
        .stderr()
        .find(0, |record| record.text("message").contains("`proxyd init`"));
    assert_eq!(advice.text("level"), "INFO");
    proxyd.terminate();
    assert!(proxyd.wait().success());
}

#[test]
fn a_configuration_without_its_flag_gets_the_flag_as_advice() {
    let printed_text = run(&["my.kdl"]);
    assert_eq!(printed_text.status.code(), Some(2));
    let printed = String::from_utf8_lossy(&printed_text.stderr).into_owned();
    assert!(printed.contains("--config my.kdl"), "{printed}");

    let other = run(&["frobnicate"]);
    assert_eq!(other.status.code(), Some(2));
    let printed = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(!printed.contains("--config frobnicate"), "{printed}");
}

#[test]
fn a_configuration_is_laid_out_in_its_place_with_its_comments() {
    let folder = ConfigFolder::new();
    let file = folder.file(
        "site.kdl",
        &GOOD.replace("routes {", "routes   { /* all */"),
    );

    let checked = run_with(&["config", "fmt", "--check"], &file);
    assert_eq!(checked.status.code(), Some(1));
    assert!(text(&checked.stdout).contains("site.kdl"));
    assert!(fs::read_to_string(&file).unwrap().contains("routes   {"));

    let written = run_with(&["config", "fmt"], &file);
    assert_eq!(written.status.code(), Some(0), "{}", text(&written.stderr));
    let laid_out = fs::read_to_string(&file).unwrap();
    assert!(
        laid_out.contains("\nroutes {\n    /* all */\n"),
        "{laid_out}"
    );
    let again = run_with(&["config", "fmt", "--check"], &file);
    assert_eq!(again.status.code(), Some(0), "{laid_out}");

    let faulty = folder.file("open.kdl", "limits {");
    let refused = run_with(&["config", "fmt"], &faulty);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("open.kdl:1:"));
    assert_eq!(fs::read_to_string(&faulty).unwrap(), "limits {");
}

#[test]
fn a_report_is_in_sentences_where_graphics_are_unwanted() {
    let folder = ConfigFolder::new();
    let file = folder.file("faulty.kdl", FAULTY);

    let drawn = run_with(&["--test", "--config"], &file);
    let printed_text = command()
        .env("NO_GRAPHICS", "1")
        .args(["--test", "--config"])
        .arg(&file)
        .output()
        .unwrap();

    assert!(
        text(&drawn.stderr).contains(",-["),
        "{}",
        text(&drawn.stderr)
    );
    let printed_text = text(&printed_text.stderr);
    assert!(
        !printed_text.contains(",-[") && !printed_text.contains('\u{1b}'),
        "{printed_text}"
    );
    assert!(
        printed_text.contains("error[undefined-name]") && printed_text.contains("line 3"),
        "{printed_text}"
    );
}
