//! A bundle uses only those parts of the machine that the node's own file allows.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use proxy_config::{Files, Loaded, Report, load_bundle, load_over, parse};
use proxy_model::registry::{self, MachinePart};
use proxy_model::{AgentAddress, PeerRule, Service};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use tempfile::TempDir;

const ROUTES: &str = r#"upstreams { upstream "app" { target "10.0.0.1:80" } }
routes { route "all" { upstream "app" } }
"#;

/// Names at the top of a file that configure the machine, each with settings that the node's own
/// file may have.
const OF_MACHINE: [(&str, &str); 9] = [
    ("admin", r#"admin { address "127.0.0.1:9999" }"#),
    (
        "control-plane",
        r#"control-plane { url "https://other.example"; data-dir "/srv/data" }"#,
    ),
    (
        "observability",
        r#"observability { access-log { path "/srv/access.log" } }"#,
    ),
    (
        "observability",
        r#"observability { error-log { path "/srv/error.log" } }"#,
    ),
    (
        "observability",
        r#"observability { metrics { address "127.0.0.1:9999" } }"#,
    ),
    ("system", "system { worker-threads 64 }"),
    ("system", "system { workers 64 }"),
    ("server", "server { worker-threads 64 }"),
    ("worker-threads", "worker-threads 64"),
];

/// Names at the top of a file that configure the service.
const OF_BUNDLE: [(&str, &str); 9] = [
    ("schema-version", "schema-version 1"),
    ("include", r#"include "more.kdl""#),
    (
        "listeners",
        r#"listeners { listener "main" { address "127.0.0.1:8080" } }"#,
    ),
    (
        "routes",
        r#"routes { route "b" { matches { path-prefix "/b" }; upstream "app" } }"#,
    ),
    (
        "upstreams",
        r#"upstreams { upstream "b" { target "10.0.0.2:80" } }"#,
    ),
    (
        "agents",
        r#"agents { agent "waf" { failure-mode "open" } }"#,
    ),
    ("limits", "limits { max-header-count 50 }"),
    ("cache", "cache { max-bytes 1048576 }"),
    (
        "tests",
        r#"tests { test "all" { request "GET" "/"; expect { route "all" } } }"#,
    ),
];

/// A machine with a data folder, a bundle in it, and an own file.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["data/active/digest/www", "data/bundles", "srv/www"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("data/identity.json"), "{}").unwrap();
        Self { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Loads `bundle` over an own file with this `allow` block. `{}` stands for the machine's
    /// folder.
    fn load(&self, allow: &str, bundle: &str) -> Result<Loaded, Report> {
        let root = self.at("");
        let root = root.to_str().unwrap().trim_end_matches('/');
        let own = format!(
            "control-plane {{\n    url \"https://c.example\"\n    data-dir \"{root}/data\"\n    allow {{ {} }}\n}}\n",
            allow.replace("{}", root)
        );
        fs::write(self.at("proxyd.kdl"), own).unwrap();
        let entry = self.at("data/active/digest/proxy.kdl");
        fs::write(&entry, bundle.replace("{}", root)).unwrap();
        let keys = BTreeSet::new();
        let own = self.at("proxyd.kdl");
        let files = Files::DiskAnd(&keys);
        load_over(files, entry.to_str().unwrap(), own.to_str().unwrap())
    }

    fn codes(&self, allow: &str, bundle: &str) -> Vec<&'static str> {
        codes(&self.load(allow, bundle))
    }
}

/// The errors of a load.
fn codes(loaded: &Result<Loaded, Report>) -> Vec<&'static str> {
    let Err(report) = loaded else {
        return Vec::new();
    };
    let errors = report.faults().iter();
    let errors = errors.filter(|fault| fault.severity().name() == "error");
    errors.map(|fault| fault.code.name()).collect()
}

fn in_control_plane(bundle: &str) -> Result<Loaded, Report> {
    in_control_plane_with(bundle, "")
}

/// With this text of the bundle's file `more.kdl`.
fn in_control_plane_with(bundle: &str, more: &str) -> Result<Loaded, Report> {
    let files = [("proxy.kdl", bundle), ("more.kdl", more)];
    let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
    load_bundle(Files::Memory(&files.into()), "proxy.kdl")
}

fn site(root: &str) -> String {
    format!(
        "routes {{ route \"site\" {{ service-type \"static\"; static-files {{ root \"{root}\" }} }} }}\n"
    )
}

fn listener(settings: &str) -> String {
    format!("{ROUTES}listeners {{ listener \"main\" {{ {settings} }} }}\n")
}

fn target(address: &str) -> String {
    format!(
        "upstreams {{ upstream \"app\" {{ target \"{address}\" }} }}\nroutes {{ route \"all\" {{ upstream \"app\" }} }}\n"
    )
}

fn upstream_tls(settings: &str) -> String {
    format!(
        "upstreams {{ upstream \"app\" {{ target \"10.0.0.1:443\"; tls {{ {settings} }} }} }}\nroutes {{ route \"all\" {{ upstream \"app\" }} }}\n"
    )
}

fn listener_tls(settings: &str) -> String {
    listener(&format!(
        "address \"0.0.0.0:8443\"; protocol \"https\"; tls {{ {settings} }}"
    ))
}

/// An `acme` block of a listener, with TLS-ALPN-01 unless `settings` choose otherwise.
fn acme(settings: &str) -> String {
    let challenge = if settings.contains("challenge") {
        ""
    } else {
        "challenge \"tls-alpn-01\"; "
    };
    format!(
        "acme {{ hosts \"a.test\"; email \"a@b.test\"; terms-agreed #true; directory \"https://ca.test/d\"; \
         {challenge}{settings} }}"
    )
}

fn agent(settings: &str) -> String {
    format!(
        "upstreams {{ upstream \"app\" {{ target \"10.0.0.1:80\" }} }}\n\
         routes {{ route \"all\" {{ upstream \"app\"; agents \"waf\" }} }}\n\
         agents {{ agent \"waf\" {{ failure-mode \"closed\"; {settings} }} }}\n"
    )
}

fn route(settings: &str) -> String {
    format!(
        "upstreams {{ upstream \"app\" {{ target \"10.0.0.1:80\" }} }}\n\
         routes {{ route \"all\" {{ upstream \"app\"; {settings} }} }}\n"
    )
}

fn store(url: &str) -> String {
    format!(
        "upstreams {{ upstream \"app\" {{ target \"10.0.0.1:80\" }} }}\n\
         routes {{ route \"all\" {{ upstream \"app\"; policies {{ rate-limit {{ requests-per-second 1; store \"{url}\" }} }} }} }}\n"
    )
}

#[test]
fn each_setting_that_names_a_part_of_the_machine_is_refused_in_a_bundle() {
    const CERT: &str = "listeners.listener.tls.";
    let pem = "/etc/ssl/a.pem";
    let cases: BTreeMap<String, String> = [
        ("include", format!("{ROUTES}include \"/etc/*.conf\"\n")),
        ("listeners.listener.address", listener("address \"0.0.0.0:22\"")),
        (
            "listeners.listener.allow-file",
            listener("address \"127.0.0.1:8080\"; allow-file \"/etc/hosts\""),
        ),
        (
            "listeners.listener.deny-file",
            listener("address \"127.0.0.1:8080\"; deny-file \"/etc/hosts\""),
        ),
        ("routes.route.policies.allow-file", route("allow-file \"/etc/hosts\"")),
        ("routes.route.policies.deny-file", route("deny-file \"/etc/hosts\"")),
        (
            "routes.route.policies.basic-auth.users-file",
            route("basic-auth { users-file \"/etc/hosts\" }"),
        ),
        (
            "routes.route.policies.jwt.jwks-file",
            route("jwt { issuer \"i\"; audience \"a\"; jwks-file \"/etc/hosts\" }"),
        ),
        (
            "routes.route.policies.jwt.jwks-url",
            "upstreams { upstream \"app\" { target \"127.0.0.1:80\" } }\n\
             routes { route \"all\" { upstream \"app\"; jwt { issuer \"i\"; audience \"a\"; \
             jwks-url \"http://id.test/keys\"; jwks-upstream \"app\" } } }\n"
                .to_owned(),
        ),
        (
            "routes.route.policies.jwt.hmac-file",
            route("jwt { issuer \"i\"; audience \"a\"; hmac-file \"token.secret\" }"),
        ),
        (
            "routes.route.policies.error-pages.page.file",
            route("error-pages { page 404 file=\"/etc/hosts\" }"),
        ),
        (
            "listeners.listener.error-pages.page.file",
            listener("address \"127.0.0.1:8080\"; error-pages { page 404 file=\"/etc/hosts\" }"),
        ),
        ("routes.route.static-files.root", site("/etc")),
        ("routes.route.policies.rate-limit.store", store("redis://127.0.0.1:6379")),
        ("upstreams.upstream.targets.target.address", target("127.0.0.1:80")),
        ("upstreams.upstream.tls.ca-file", upstream_tls(&format!("ca-file \"{pem}\""))),
        (
            "upstreams.upstream.tls.cert-file",
            upstream_tls(&format!("cert-file \"{pem}\"; key-file \"a.key\"")),
        ),
        (
            "upstreams.upstream.tls.key-file",
            upstream_tls(&format!("cert-file \"a.pem\"; key-file \"{pem}\"")),
        ),
        ("agents.agent.unix-socket", agent("unix-socket \"/run/docker.sock\"")),
        (
            "agents.agent.transport.path",
            agent("transport \"unix_socket\" { path \"/run/docker.sock\" }"),
        ),
    ]
    .map(|(path, bundle)| (path.to_owned(), bundle))
    .into_iter()
    .chain(
        [
            ("cert-file", format!("cert-file \"{pem}\"; key-file \"a.key\"")),
            ("key-file", format!("cert-file \"a.pem\"; key-file \"{pem}\"")),
            ("ocsp-file", format!("cert-file \"a.pem\"; key-file \"a.key\"; ocsp-file \"{pem}\"")),
            ("certificate.cert-file", format!("certificate {{ cert-file \"{pem}\"; key-file \"a.key\" }}")),
            ("certificate.key-file", format!("certificate {{ cert-file \"a.pem\"; key-file \"{pem}\" }}")),
            (
                "certificate.ocsp-file",
                format!("certificate {{ cert-file \"a.pem\"; key-file \"a.key\"; ocsp-file \"{pem}\" }}"),
            ),
            (
                "client-auth.ca-file",
                format!("cert-file \"a.pem\"; key-file \"a.key\"; client-auth \"optional\" {{ ca-file \"{pem}\" }}"),
            ),
            ("acme.directory", acme("")),
            ("acme.storage", acme("storage \"/srv/acme\"")),
            ("acme.directory-ca-file", acme(&format!("directory-ca-file \"{pem}\""))),
            ("acme.dns-command", acme("challenge \"dns-01\"; dns-command \"/usr/bin/dns\"")),
            ("acme.eab.key-file", acme(&format!("eab {{ key-id \"a\"; key-file \"{pem}\" }}"))),
        ]
        .map(|(name, settings)| (format!("{CERT}{name}"), listener_tls(&settings))),
    )
    .collect();
    let of_node = ["admin.", "control-plane.", "observability.", "system."];
    let marked: BTreeSet<String> = registry::all()
        .into_iter()
        .filter(|row| row.machine.is_some())
        .filter(|row| !of_node.iter().any(|block| row.path.starts_with(block)))
        .map(|row| row.path.to_owned())
        .collect();
    assert_eq!(cases.keys().cloned().collect::<BTreeSet<_>>(), marked);

    let machine = Machine::new();
    for name in ["a.pem", "a.key"] {
        fs::write(machine.at("data/active/digest").join(name), "").unwrap();
    }
    let secret = machine.at("data/active/digest/token.secret");
    fs::write(secret, "s".repeat(32)).unwrap();
    for (path, bundle) in cases {
        let loaded = machine.load("", &bundle);
        assert!(
            codes(&loaded).contains(&"bundle-reach"),
            "{path}: {loaded:?}"
        );
        let report = loaded.unwrap_err();
        let mut found = report.faults().iter();
        let found = found
            .find(|fault| fault.code.name() == "bundle-reach")
            .unwrap();
        assert!(found.place.line > 0 && found.help.is_some(), "{path}");
        let checked = in_control_plane(&bundle);
        let reported = checked.map_or_else(|report| report, |loaded| loaded.warnings);
        let reported: Vec<&str> = reported
            .faults()
            .iter()
            .map(|fault| fault.code.name())
            .collect();
        let says_so = reported.contains(&"bundle-reach") || reported.contains(&"node-allowance");
        assert!(says_so, "{path}: {reported:?}");
    }
}

#[test]
fn every_name_at_the_top_of_a_file_is_the_machines_or_the_bundles() {
    let at_the_top = registry::all()
        .into_iter()
        .filter(|row| row.block().is_empty() || row.also.contains(&""));
    let registered: BTreeSet<String> = at_the_top
        .flat_map(|row| std::iter::once(row.name().to_owned()).chain(row.aliases))
        .collect();
    let listed = OF_MACHINE.iter().chain(&OF_BUNDLE);
    let listed: BTreeSet<String> = listed.map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(registered, listed);
    for (name, block) in OF_BUNDLE {
        let bundle = format!("{ROUTES}{block}\n");
        assert_eq!(codes(&in_control_plane(&bundle)), [""; 0], "{name}");
    }
}

#[test]
fn a_bundle_with_settings_of_the_machine_is_refused() {
    let machine = Machine::new();
    let including = format!("{ROUTES}include \"more.kdl\"\n");
    for (name, block) in OF_MACHINE {
        let direct = format!("{ROUTES}{block}\n");
        let own = parse(&direct, "proxyd.kdl");
        assert!(own.is_ok(), "{name} in an own file: {own:?}");
        fs::write(machine.at("data/active/digest/more.kdl"), block).unwrap();
        for loaded in [
            in_control_plane(&direct),
            in_control_plane_with(&including, block),
            machine.load("", &direct),
            machine.load("", &including),
        ] {
            let found = codes(&loaded);
            let is_refused = !found.is_empty() && found.iter().all(|code| *code == "node-setting");
            assert!(is_refused, "{block}: {loaded:?}");
        }
    }
}

#[test]
fn every_path_socket_and_address_of_the_registry_is_marked() {
    let by_name = |name: &str| {
        let marks = [
            ("-file", MachinePart::File),
            ("root", MachinePart::Folder),
            ("-dir", MachinePart::Folder),
            ("-roots", MachinePart::Folder),
            ("socket", MachinePart::Socket),
        ];
        let mut marks = marks.iter();
        marks
            .find(|(end, _)| name.ends_with(end))
            .map(|(_, part)| *part)
    };
    for row in registry::all() {
        let registry::Shape::Text { what, example } = &row.shape else {
            assert_eq!(row.machine, None, "{}", row.path);
            continue;
        };
        if let Some(part) = by_name(row.name()) {
            assert_eq!(row.machine, Some(part), "{}", row.path);
        }
        let is_request = row.path.starts_with("tests.")
            || row.path.contains(".matches.")
            || row.path.contains(".redirect.")
            || row.path.contains(".rewrite.")
            || row.path.contains(".cors.");
        let is_path = example.starts_with('/') || example.contains("=/");
        let is_host = example.contains("://") || example.parse::<std::net::SocketAddr>().is_ok();
        let is_place =
            is_path || is_host || what.contains("socket") || what.contains("to listen on");
        // Paths of requests, which the proxy sends to targets.
        let is_sent =
            ["request-path", "path", "endpoint"].contains(&row.name()) && *what == "a path";
        if is_place && !is_request && !is_sent {
            assert!(row.machine.is_some(), "{}: {what}, {example}", row.path);
        }
    }
}

#[test]
fn a_bundle_may_use_the_allowed_parts_of_the_machine() {
    let machine = Machine::new();
    fs::write(machine.at("data/active/digest/404.html"), "<p>gone</p>").unwrap();
    let www = machine.at("srv/www");
    for (allow, root) in [
        ("static-roots \"site={}/srv/www\"", "site"),
        ("static-roots \"{}/srv/www\"", "{}/srv/www"),
        ("static-roots \"{}/srv\"", "{}/srv/www"),
    ] {
        let loaded = machine.load(allow, &site(root)).unwrap();
        let Service::Static(files) = &loaded.model.routes[0].service else {
            panic!("{:?}", loaded.model.routes[0].service);
        };
        assert_eq!(files.root.value, www, "{allow}");
    }
    let loaded = machine
        .load("agents \"waf=/run/waf.sock\"", &agent(""))
        .unwrap();
    let AgentAddress::Socket(socket) = &loaded.model.agents[0].address else {
        panic!("it has a socket");
    };
    assert_eq!(socket.value, PathBuf::from("/run/waf.sock"));
    for (allow, bundle) in [
        (
            "listeners \"0.0.0.0:443\"",
            listener("address \"10.0.0.1:443\""),
        ),
        (
            "listeners \"[::]:443\"",
            listener("address \"10.0.0.1:443\""),
        ),
        (
            "listeners \"unix:/run/a.sock\"",
            listener("address \"unix:/run/a.sock\""),
        ),
        (
            "acme-storages \"/srv/acme\"",
            listener_tls(&acme("storage \"/srv/acme\"")),
        ),
        (
            "acme-storages \"acme=/srv/acme\"; dns-commands \"dns=/usr/bin/dns\"",
            listener_tls(&acme(
                "storage \"acme\"; challenge \"dns-01\"; dns-command \"dns\"",
            )),
        ),
        ("upstreams-on-loopback #true", target("127.0.0.1:80")),
        ("upstreams-on-loopback #true", target("localhost:80")),
        (
            "rate-limit-stores \"cache:6379\"",
            store("redis://cache:6379"),
        ),
        ("", store("redis://10.0.0.9:6379")),
        ("", listener("address \"0.0.0.0:1024\"")),
        ("", target("10.0.0.1:80")),
        ("", site("www")),
        ("", route("error-pages { page 404 file=\"404.html\" }")),
    ] {
        assert_eq!(machine.codes(allow, &bundle), [""; 0], "{allow} {bundle}");
    }
    let loaded = machine.load("upstreams-on-loopback #true", ROUTES).unwrap();
    let admin = Some("127.0.0.1:9090".parse().unwrap());
    assert_eq!(
        loaded.model.peers,
        Some(PeerRule {
            loopback: true,
            admin
        })
    );
}

#[test]
fn a_permission_allows_nothing_else() {
    let machine = Machine::new();
    symlink("/etc", machine.at("srv/www/etc")).unwrap();
    for (allow, bundle) in [
        ("static-roots \"{}/srv/www\"", site("{}/srv")),
        ("static-roots \"{}/srv/www\"", site("{}/srv/www/../../data")),
        ("static-roots \"{}/srv/www\"", site("{}/srv/www/etc")),
        ("static-roots \"{}/srv/www\"", site("site")),
        ("static-roots \"site={}/srv/www\"", site("../../../srv/www")),
        (
            "listeners \"0.0.0.0:443\"",
            listener("address \"0.0.0.0:80\""),
        ),
        (
            "listeners \"0.0.0.0:443\"",
            listener("address \"[::]:443\""),
        ),
        (
            "listeners \"10.0.0.1:443\"",
            listener("address \"0.0.0.0:443\""),
        ),
        (
            "listeners \"unix:/run/a\"",
            listener("address \"unix:/run/b\""),
        ),
        ("agents \"other=/run/waf.sock\"", agent("")),
        (
            "agents \"waf=/run/waf.sock\"",
            agent("unix-socket \"/run/waf.sock\""),
        ),
        ("upstreams-on-loopback #true", target("127.0.0.1:9090")),
        (
            "upstreams-on-loopback #true",
            target("[::ffff:127.0.0.1]:9090"),
        ),
        ("upstreams-on-loopback #true", target("169.254.169.254:80")),
        ("", target("0.0.0.0:80")),
        ("", target("localhost:80")),
        (
            "rate-limit-stores \"cache:6379\"",
            store("redis://cache:6380"),
        ),
        (
            "acme-storages \"/srv/acme\"",
            listener_tls(&acme("storage \"/srv/other\"")),
        ),
        (
            "acme-storages \"acme=/srv/acme\"",
            listener_tls(&acme(
                "storage \"acme\"; challenge \"dns-01\"; dns-command \"dns\"",
            )),
        ),
    ] {
        assert_eq!(
            machine.codes(allow, &bundle),
            ["bundle-reach"],
            "{allow} {bundle}"
        );
    }
}

#[test]
fn no_name_leads_a_bundle_into_the_data_folder() {
    let machine = Machine::new();
    symlink(machine.at("data"), machine.at("srv/www/link")).unwrap();
    for (allow, root) in [
        ("static-roots \"{}/data\"", "{}/data"),
        ("static-roots \"{}\"", "{}"),
        ("static-roots \"{}\"", "{}/srv/../data/active"),
        ("static-roots \"/\"", "/"),
        ("static-roots \"site={}/srv/www/link\"", "site"),
        ("static-roots \"{}\"", "{}/srv/www/link"),
        ("static-roots \"{}\"", "{}/data/bundles"),
    ] {
        assert_eq!(
            machine.codes(allow, &site(root)),
            ["bundle-reach"],
            "{allow} {root}"
        );
    }
}

#[test]
fn a_block_removed_from_the_own_file_allows_nothing() {
    let machine = Machine::new();
    fs::write(machine.at("empty.kdl"), "").unwrap();
    let entry = machine.at("data/active/digest/proxy.kdl");
    fs::write(&entry, target("127.0.0.1:80")).unwrap();
    let own = machine.at("empty.kdl");
    let loaded = load_over(Files::Disk, entry.to_str().unwrap(), own.to_str().unwrap());
    assert_eq!(codes(&loaded), ["bundle-reach"]);
}
