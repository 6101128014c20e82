//! The settings of the process, and of those it works with.

use super::block::Block;
use super::secret::without_userinfo;
use super::{EffectiveSetting, SettingValue};
use proxy_model::registry::{
    admin as admin_rows, agents as agent_rows, control_plane as plane_rows,
    observability as log_rows, system as system_rows,
};
use proxy_model::{
    AccessLog, Admin, Agent, AgentBreaker, ControlPlane, ErrorLog, Observability, Sources, System,
};

pub(super) fn system(sources: &Sources, system: &System) -> Vec<EffectiveSetting> {
    let System {
        worker_threads,
        graceful_shutdown_timeout,
    } = system;
    let mut block = Block::new(sources, "system");
    block.put(&system_rows::WORKER_THREADS, [worker_threads]);
    let rest = [graceful_shutdown_timeout];
    block.put(&system_rows::GRACEFUL_SHUTDOWN_TIMEOUT, rest);
    block.into_settings()
}

pub(super) fn admin(sources: &Sources, admin: &Admin) -> Vec<EffectiveSetting> {
    let Admin {
        address,
        token_file,
        unix_socket,
    } = admin;
    let mut block = Block::new(sources, "admin");
    block.put(&admin_rows::ADDRESS, [address]);
    block.put(&admin_rows::TOKEN_FILE, token_file);
    block.put(&admin_rows::UNIX_SOCKET, unix_socket);
    block.into_settings()
}

pub(super) fn observability(sources: &Sources, logs: &Observability) -> Vec<EffectiveSetting> {
    let Observability {
        access_log,
        error_log,
        redact_query,
    } = logs;
    let AccessLog {
        enabled,
        path,
        buffer_lines,
    } = access_log;
    let mut block = Block::new(sources, "observability");
    block.put(&log_rows::ACCESS_ENABLED, [enabled]);
    block.put(&log_rows::ACCESS_PATH, [path]);
    block.put(&log_rows::ACCESS_BUFFER, [buffer_lines]);
    let ErrorLog { level, path } = error_log;
    block.put(&log_rows::ERROR_LEVEL, [level]);
    block.put(&log_rows::ERROR_PATH, [path]);
    block.put(&log_rows::REDACT_QUERY, redact_query);
    block.into_settings()
}

pub(super) fn agent(sources: &Sources, agent: &Agent) -> Vec<EffectiveSetting> {
    let Agent {
        name,
        place: _,
        unix_socket,
        failure_mode,
        timeout,
        encoding,
        circuit_breaker,
    } = agent;
    let mut block = Block::named(sources, "agents.agent", name);
    block.put(&agent_rows::UNIX_SOCKET, [unix_socket]);
    block.put(&agent_rows::FAILURE_MODE, [failure_mode]);
    block.put(&agent_rows::TIMEOUT, [timeout]);
    block.put(&agent_rows::ENCODING, [encoding]);
    if let Some(breaker) = circuit_breaker {
        let AgentBreaker {
            place: _,
            failure_threshold,
            timeout,
        } = breaker;
        block.put(&agent_rows::FAILURE_THRESHOLD, [failure_threshold]);
        block.put(&agent_rows::BREAKER_TIMEOUT, [timeout]);
    }
    block.into_settings()
}

pub(super) fn control_plane(sources: &Sources, plane: &ControlPlane) -> Vec<EffectiveSetting> {
    let ControlPlane {
        place: _,
        url,
        node_id,
        node_key_file,
        enrolment_token_file,
        data_dir,
        heartbeat_interval,
    } = plane;
    let mut block = Block::new(sources, "control-plane");
    let shown_url = SettingValue::Text(without_userinfo(url));
    block.put_value(&plane_rows::URL, shown_url, url.origin);
    block.put(&plane_rows::NODE_ID, node_id);
    block.put(&plane_rows::NODE_KEY_FILE, node_key_file);
    block.put(&plane_rows::ENROLMENT_TOKEN_FILE, enrolment_token_file);
    block.put(&plane_rows::DATA_DIR, [data_dir]);
    block.put(&plane_rows::HEARTBEAT_INTERVAL, [heartbeat_interval]);
    block.into_settings()
}
