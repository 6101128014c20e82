//! The examples of the crates' READMEs as one test program: a program for each crate takes minutes to build.
#![cfg(doctest)]

/// A documented module for the README of each crate.
macro_rules! readmes {
    ($($module:ident: $krate:literal,)*) => {
        $(
            #[doc = include_str!(concat!("../../crates/", $krate, "/README.md"))]
            mod $module {}
        )*
    };
}

readmes! {
    agent_check: "agent-check",
    agent_protocol: "agent-protocol",
    control_api: "control-api",
    control_app: "control-app",
    control_auth: "control-auth",
    control_bundle: "control-bundle",
    control_client: "control-client",
    control_domain: "control-domain",
    control_http: "control-http",
    control_simulator: "control-simulator",
    control_sso: "control-sso",
    control_store: "control-store",
    control_testkit: "control-testkit",
    control_ui: "control-ui",
    control_wire: "control-wire",
    proxy_acme: "proxy-acme",
    proxy_admin: "proxy-admin",
    proxy_agent: "proxy-agent",
    proxy_agent_kit: "proxy-agent-kit",
    proxy_auth: "proxy-auth",
    proxy_cache: "proxy-cache",
    proxy_clock: "proxy-clock",
    proxy_coding: "proxy-coding",
    proxy_config: "proxy-config",
    proxy_dns: "proxy-dns",
    proxy_errors: "proxy-errors",
    proxy_files: "proxy-files",
    proxy_framing: "proxy-framing",
    proxy_health: "proxy-health",
    proxy_http1: "proxy-http1",
    proxy_http3: "proxy-http3",
    proxy_limits: "proxy-limits",
    proxy_load: "proxy-load",
    proxy_migrate: "proxy-migrate",
    proxy_model: "proxy-model",
    proxy_otlp: "proxy-otlp",
    proxy_pipeline: "proxy-pipeline",
    proxy_plan: "proxy-plan",
    proxy_pool: "proxy-pool",
    proxy_probe: "proxy-probe",
    proxy_redis: "proxy-redis",
    proxy_routing: "proxy-routing",
    proxy_server: "proxy-server",
    proxy_setting_files: "proxy-setting-files",
    proxy_telemetry: "proxy-telemetry",
    proxy_testkit: "proxy-testkit",
    proxy_tls: "proxy-tls",
    proxy_top: "proxy-top",
    proxy_upstream: "proxy-upstream",
}
