//! The settings of the process, its interfaces and its agents.

use crate::admin::Admin;
use crate::agent::{Agent, AgentAddress, AgentBreaker};
use crate::control_plane::{Allow, ControlPlane};
use crate::effective::list::{List, path, plain, text};
use crate::model::Model;
use crate::observability::{AccessLog, ErrorLog, Observability, Otlp, Recording, TraceContext};
use crate::policies::Cache;
use crate::registry::observability::otlp as otlp_spec;
use crate::registry::policies::cache as cache_spec;
use crate::registry::{
    admin as admin_spec, agents as agent_spec, control_plane as control_spec,
    observability as log_spec, system as system_spec,
};
use crate::secret::REDACTED;
use crate::system::{Dns, System};

pub(super) fn system(list: &mut List, system: &System) {
    let System {
        worker_threads,
        graceful_shutdown_timeout,
        dns,
    } = system;
    list.put(&system_spec::WORKER_THREADS, worker_threads, plain);
    list.time(
        &system_spec::GRACEFUL_SHUTDOWN_TIMEOUT,
        graceful_shutdown_timeout,
    );
    list.within("dns", |list| {
        let Dns {
            name_servers,
            timeout,
            min_ttl,
            max_ttl,
        } = dns;
        list.put_all(&system_spec::NAME_SERVERS, name_servers, text);
        list.time(&system_spec::DNS_TIMEOUT, timeout);
        list.time(&system_spec::MIN_TTL_SECS, min_ttl);
        list.time(&system_spec::MAX_TTL_SECS, max_ttl);
    });
}

pub(super) fn cache(list: &mut List, cache: &Cache) {
    let Cache {
        max_bytes,
        max_object_bytes,
    } = cache;
    list.put(&cache_spec::MAX_BYTES, max_bytes, plain);
    list.put(&cache_spec::MAX_OBJECT_BYTES, max_object_bytes, plain);
}

pub(super) fn admin(list: &mut List, admin: &Admin) {
    let Admin {
        address,
        token_file,
        unix_socket,
    } = admin;
    list.put(&admin_spec::ADDRESS, address, |address| match address {
        Some(address) => text(address),
        None => "off".into(),
    });
    list.put_any(&admin_spec::TOKEN_FILE, token_file.as_ref(), path);
    list.put_any(&admin_spec::UNIX_SOCKET, unix_socket.as_ref(), path);
}

pub(super) fn observability(list: &mut List, observability: &Observability) {
    let Observability {
        access_log,
        error_log,
        redact_query,
        trace_context,
        recording,
        otlp,
    } = observability;
    list.within("access-log", |list| {
        let AccessLog {
            enabled,
            path,
            format,
            buffer_lines,
        } = access_log;
        list.put(&log_spec::ACCESS_ENABLED, enabled, plain);
        list.put(&log_spec::ACCESS_PATH, path, text);
        list.put(&log_spec::ACCESS_FORMAT, format, text);
        list.put(&log_spec::ACCESS_BUFFER, buffer_lines, plain);
    });
    list.within("error-log", |list| {
        let ErrorLog { level, path } = error_log;
        list.put(&log_spec::ERROR_LEVEL, level, text);
        list.put(&log_spec::ERROR_PATH, path, text);
    });
    list.put_all(&log_spec::REDACT_QUERY, redact_query, text);
    list.within("trace-context", |list| {
        let TraceContext {
            begin,
            sample_percent,
        } = trace_context;
        list.put(&log_spec::TRACE_BEGIN, begin, plain);
        list.put(&log_spec::TRACE_SAMPLE, sample_percent, plain);
    });
    if let Some(recording) = recording {
        list.within("recording", |list| {
            let Recording {
                sample_percent,
                keep_bytes,
                redact,
            } = recording;
            list.put(&log_spec::RECORDING_SAMPLE, sample_percent, plain);
            list.put(&log_spec::RECORDING_KEEP, keep_bytes, plain);
            list.put_all(&log_spec::RECORDING_REDACT, redact, text);
        });
    }
    if let Some(otlp) = otlp {
        list.within("otlp", |list| exported(list, otlp));
    }
}

fn exported(list: &mut List, otlp: &Otlp) {
    let Otlp {
        endpoint,
        headers,
        ca_file,
        service_name,
        compression,
        timeout,
        traces,
        queue_spans,
        metrics,
        interval,
    } = otlp;
    list.put(&otlp_spec::ENDPOINT, endpoint, text);
    list.put_all(&otlp_spec::HEADER, headers, |field| {
        format!("{}: {REDACTED}", field.name).into()
    });
    list.put_any(&otlp_spec::OTLP_CA_FILE, ca_file.as_ref(), path);
    list.put(&otlp_spec::SERVICE_NAME, service_name, text);
    list.put(&otlp_spec::COMPRESSION, compression, text);
    list.time(&otlp_spec::OTLP_TIMEOUT, timeout);
    list.put(&otlp_spec::TRACES, traces, plain);
    list.put(&otlp_spec::QUEUE_SPANS, queue_spans, plain);
    list.put(&otlp_spec::METRICS, metrics, plain);
    list.time(&otlp_spec::INTERVAL, interval);
}

pub(super) fn agent(list: &mut List, model: &Model, agent: &Agent) {
    let Agent {
        name: _,
        place: _,
        address,
        failure_mode,
        protocol,
        events,
        on_oversize,
        request_path,
        request_host,
        copy_headers,
        copy_response_headers,
        timeout,
        encoding,
        circuit_breaker,
    } = agent;
    match address {
        AgentAddress::Socket(socket) => list.put(&agent_spec::UNIX_SOCKET, socket, path),
        AgentAddress::Upstream(index) => list.put(&agent_spec::UPSTREAM, index, |index| {
            let upstream = model.upstream(*index);
            upstream.map(|upstream| upstream.name.clone()).into()
        }),
    }
    list.put(&agent_spec::FAILURE_MODE, failure_mode, text);
    list.put(&agent_spec::PROTOCOL, protocol, text);
    list.put_all(&agent_spec::EVENTS, events, text);
    list.put(&agent_spec::ON_OVERSIZE, on_oversize, text);
    list.put(&agent_spec::REQUEST_PATH, request_path, text);
    list.put_any(&agent_spec::REQUEST_HOST, request_host.as_ref(), text);
    list.put_all(&agent_spec::COPY_HEADERS, copy_headers, text);
    list.put_all(
        &agent_spec::COPY_RESPONSE_HEADERS,
        copy_response_headers,
        text,
    );
    list.time(&agent_spec::TIMEOUT, timeout);
    list.put(&agent_spec::ENCODING, encoding, text);
    let Some(breaker) = circuit_breaker else {
        return;
    };
    let AgentBreaker {
        place: _,
        failure_threshold,
        timeout,
    } = breaker;
    list.within("circuit-breaker", |list| {
        list.put(&agent_spec::FAILURE_THRESHOLD, failure_threshold, plain);
        list.time(&agent_spec::BREAKER_TIMEOUT, timeout);
    });
}

pub(super) fn control_plane(list: &mut List, control_plane: &ControlPlane) {
    let ControlPlane {
        place: _,
        url,
        allow_plain_http,
        project,
        enrolment_token_file,
        data_dir,
        machine_key_file,
        ca_file,
        node_name,
        labels,
        allow,
    } = control_plane;
    list.put(&control_spec::URL, url, text);
    list.put(&control_spec::ALLOW_PLAIN_HTTP, allow_plain_http, plain);
    list.put_any(&control_spec::PROJECT, project.as_ref(), text);
    list.put_any(
        &control_spec::ENROLMENT_TOKEN_FILE,
        enrolment_token_file.as_ref(),
        path,
    );
    list.put(&control_spec::DATA_DIR, data_dir, path);
    list.put_any(
        &control_spec::MACHINE_KEY_FILE,
        machine_key_file.as_ref(),
        path,
    );
    list.put_any(&control_spec::CA_FILE, ca_file.as_ref(), path);
    list.put_any(&control_spec::NODE_NAME, node_name.as_ref(), text);
    list.put_all(&control_spec::LABELS, labels, text);
    list.within("allow", |list| allowed(list, allow));
}

fn allowed(list: &mut List, allow: &Allow) {
    let Allow {
        static_roots,
        agents,
        listeners,
        rate_limit_stores,
        acme_storages,
        dns_commands,
        upstreams_on_loopback,
    } = allow;
    list.put_all(&control_spec::STATIC_ROOTS, static_roots, text);
    list.put_all(&control_spec::AGENTS, agents, text);
    list.put_all(&control_spec::LISTENERS, listeners, text);
    list.put_all(&control_spec::RATE_LIMIT_STORES, rate_limit_stores, text);
    list.put_all(&control_spec::ACME_STORAGES, acme_storages, text);
    list.put_all(&control_spec::DNS_COMMANDS, dns_commands, text);
    list.put(
        &control_spec::UPSTREAMS_ON_LOOPBACK,
        upstreams_on_loopback,
        plain,
    );
}
