//! A whole proxy in a program of your own. Ctrl-C ends it in good order.

use proxy_server::{Build, Options, Source, run};

const CONFIG: &str = r#"
listeners {
    listener "web" { address "127.0.0.1:8080"; protocol "http" }
}
routes {
    route "all" { upstream "app" }
}
upstreams {
    upstream "app" { targets { target "127.0.0.1:3000" } }
}
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let build = Build {
        version: env!("CARGO_PKG_VERSION"),
        commit: "unknown",
        built_at: "unknown",
        rustc: "unknown",
    };
    run(&Options {
        config: Source::Text(CONFIG.into()),
        build,
        program: None,
        events: None,
        follow: None,
    })?;
    Ok(())
}
