//! Benchmark of loading a large configuration: `cargo bench -p proxy-config`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark reads the clock and talks on the terminal"
)]

use proxy_config::parse;
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUTES: usize = 10_000;
const ROUNDS: usize = 5;

fn main() {
    let text = configuration(ROUTES);
    let rounds = (0..ROUNDS).map(|_| {
        let began = Instant::now();
        black_box(parse(&text, "bench.kdl").is_ok());
        began.elapsed()
    });
    let best = rounds.min().unwrap_or(Duration::MAX);
    println!("{ROUTES} routes, {} bytes: {best:?}", text.len());
}

fn configuration(routes: usize) -> String {
    let routes: Vec<String> = (0..routes).map(route).collect();
    format!(
        "upstreams {{ upstream \"app\" {{ target \"10.0.0.1:80\" }} }}\nroutes {{\n{}}}\n",
        routes.concat()
    )
}

fn route(index: usize) -> String {
    format!(
        "    route \"r{index}\" {{
        priority 50
        matches {{
            host \"h{index}.example.com\"
            path-prefix \"/api/{index}\"
        }}
        upstream \"app\"
        policies {{
            timeout-secs 30
            max-body-size \"10MB\"
            request-headers {{
                set \"X-Env\" \"beta\"
            }}
        }}
    }}\n"
    )
}
