//! The settings of the process, its interfaces and its agents.

use crate::admin::Admin;
use crate::agent::{Agent, AgentBreaker};
use crate::control_plane::ControlPlane;
use crate::effective::list::{List, path, plain, text};
use crate::observability::{AccessLog, ErrorLog, Observability};
use crate::registry::{
    admin as admin_spec, agents as agent_spec, control_plane as control_spec,
    observability as log_spec, system as system_spec,
};
use crate::system::System;

pub(super) fn system(list: &mut List, system: &System) {
    let System {
        worker_threads,
        graceful_shutdown_timeout,
    } = system;
    list.put(&system_spec::WORKER_THREADS, worker_threads, plain);
    list.time(
        &system_spec::GRACEFUL_SHUTDOWN_TIMEOUT,
        graceful_shutdown_timeout,
    );
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
    } = observability;
    list.within("access-log", |list| {
        let AccessLog {
            enabled,
            path,
            buffer_lines,
        } = access_log;
        list.put(&log_spec::ACCESS_ENABLED, enabled, plain);
        list.put(&log_spec::ACCESS_PATH, path, text);
        list.put(&log_spec::ACCESS_BUFFER, buffer_lines, plain);
    });
    list.within("error-log", |list| {
        let ErrorLog { level, path } = error_log;
        list.put(&log_spec::ERROR_LEVEL, level, text);
        list.put(&log_spec::ERROR_PATH, path, text);
    });
    list.put_all(&log_spec::REDACT_QUERY, redact_query, text);
}

pub(super) fn agent(list: &mut List, agent: &Agent) {
    let Agent {
        name: _,
        place: _,
        unix_socket,
        failure_mode,
        timeout,
        encoding,
        circuit_breaker,
    } = agent;
    list.put(&agent_spec::UNIX_SOCKET, unix_socket, path);
    list.put(&agent_spec::FAILURE_MODE, failure_mode, text);
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
        node_id,
        node_key_file,
        enrolment_token_file,
        data_dir,
        heartbeat_interval,
    } = control_plane;
    list.put(&control_spec::URL, url, |url| {
        without_credentials(url).into()
    });
    list.put_any(&control_spec::NODE_ID, node_id.as_ref(), text);
    list.put_any(&control_spec::NODE_KEY_FILE, node_key_file.as_ref(), path);
    list.put_any(
        &control_spec::ENROLMENT_TOKEN_FILE,
        enrolment_token_file.as_ref(),
        path,
    );
    list.put(&control_spec::DATA_DIR, data_dir, path);
    list.time(&control_spec::HEARTBEAT_INTERVAL, heartbeat_interval);
}

/// A URL without its user information.
fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let host_ends = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(host_ends);
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://(redacted)@{host}{tail}"),
        None => url.to_owned(),
    }
}
