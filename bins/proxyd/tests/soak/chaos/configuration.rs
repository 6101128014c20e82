//! The configuration: every protection, with short times.

use super::target::Target;
use super::world::{AGENT_TIMEOUT, NAME, World};
use std::fmt::Write;

/// Connections to one target of the upstream `app`.
pub(crate) const MAX_CONNECTIONS: usize = 4;
/// The sum of all connections of the targets of the upstream `app`.
pub(crate) const MAX_IN_FLIGHT: usize = 3 * MAX_CONNECTIONS;
const MAX_QUEUED: usize = 3;

/// All routes but that with a limit in the store.
const ROUTES: &str = r#"
    route "app" {
        matches { path "/app" }
        upstream "app"
        circuit-breaker { failure-threshold 8; timeout-ms 1000 }
        policies { retry { attempts 2; on "connect-failure" "reset" "503" } }
    }
    route "http2" { matches { path "/http2" }; upstream "http2" }
    route "named" {
        matches { path "/named" }
        upstream "named"
        policies { buffer-requests #true; buffer-responses #true }
    }
    route "guarded" { matches { path-prefix "/guarded" }; upstream "steady"; agents "guard" }
    route "checked" {
        matches { path "/checked" "/private" }
        upstream "steady"
        agents "process"
        policies { compression }
    }
"#;

pub(crate) fn kdl(world: &World) -> String {
    let agents = agents(world);
    let store = world.redis.url();
    let name_server = world.dns.address();
    let times = "timeouts { connect-ms 1000; request-ms 1000; read-ms 1000 }";
    let pool = "idle-timeout-ms 1000";
    let (app, http2) = (targets(&world.app), targets(&world.http2));
    let port = world.named[0].address().port();
    let steady = world.steady.address();
    format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0"; h2c #true }} }}
        routes {{
            {ROUTES}
            route "limited" {{
                matches {{ path "/limited" }}
                upstream "steady"
                policies {{
                    rate-limit {{
                        requests-per-second 50; burst 60; key "route"
                        store "{store}"; store-timeout-ms 100
                    }}
                }}
            }}
        }}
        upstreams {{
            upstream "app" {{
                {app}
                load-balancing "least_connections"
                {times}
                connection-pool {{ max-connections {MAX_CONNECTIONS}; {pool} }}
                health-check {{
                    type "http" {{ path "/health" }}
                    interval-ms 1000; timeout-ms 1000
                    healthy-threshold 1; unhealthy-threshold 2
                }}
            }}
            upstream "http2" {{
                {http2}
                protocol "h2"
                {times}
                connection-pool {{ {pool} }}
                outlier-detection {{ consecutive-failures 5; base-ejection-ms 1000 }}
            }}
            upstream "named" {{
                target "{NAME}:{port}"
                {times}
                connection-pool {{ {pool} }}
            }}
            upstream "steady" {{
                target "{steady}"
                {times}
                connection-pool {{ {pool} }}
            }}
        }}
        {agents}
        limits {{
            max-in-flight-requests {MAX_IN_FLIGHT}
            max-queued-requests {MAX_QUEUED}
            max-queue-wait-ms 1000
        }}
        system {{
            worker-threads 2
            dns {{ name-servers "{name_server}"; timeout-secs 1; min-ttl-secs 1; max-ttl-secs 1 }}
        }}
        observability {{ access-log {{ buffer-lines 1000000 }} }}
        "#
    )
}

fn agents(world: &World) -> String {
    let agent_ms = AGENT_TIMEOUT.as_millis();
    let (guard, process) = (world.agent.path().display(), world.process.socket());
    let process = process.display();
    format!(
        r#"
        agents {{
            agent "guard" {{
                unix-socket "{guard}"
                failure-mode "closed"
                timeout-ms {agent_ms}
                circuit-breaker {{ failure-threshold 8; timeout-ms 1000 }}
            }}
            agent "process" {{
                unix-socket "{process}"
                failure-mode "closed"
                timeout-ms {agent_ms}
                events "request-body" "response-headers" "response-body"
            }}
        }}
        "#
    )
}

fn targets(targets: &[Target]) -> String {
    targets.iter().fold(String::new(), |mut kdl, target| {
        writeln!(kdl, "target \"{}\"", target.address()).unwrap();
        kdl
    })
}
