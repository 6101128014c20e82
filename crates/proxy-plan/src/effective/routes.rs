//! The settings of routes.

use super::block::Block;
use super::policies::put_policies;
use super::{EffectiveSetting, SettingValue};
use proxy_model::registry::{circuit_breaker, matches, routes};
use proxy_model::{
    CircuitBreaker, Matches, Model, Route, Service, ServiceForm, Setting, StaticFiles,
};

/// The settings of one route.
pub(crate) fn route(model: &Model, route: &Route) -> Vec<EffectiveSetting> {
    let Route {
        id,
        place: _,
        priority,
        matches,
        service,
        form,
        policies,
        circuit_breaker,
        agents,
    } = route;
    let mut block = Block::named(&model.sources, "routes.route", id);
    block.put(&routes::PRIORITY, [priority]);
    put_conditions(&mut block, matches);
    put_service(&mut block, model, service, form);
    for agent in agents {
        let name = model.agent(agent.value).map(|agent| agent.name.clone());
        let value = SettingValue::Text(name.unwrap_or_default());
        block.put_value(&routes::AGENTS, value, agent.origin);
    }
    put_policies(&mut block, policies);
    if let Some(breaker) = circuit_breaker {
        put_breaker(&mut block, breaker);
    }
    block.into_settings()
}

fn put_conditions(block: &mut Block<'_>, conditions: &Matches) {
    let Matches {
        hosts,
        paths,
        headers,
        methods,
        query_params,
    } = conditions;
    block.put(&matches::HOST, hosts);
    for row in [&matches::PATH, &matches::PATH_PREFIX, &matches::PATH_REGEX] {
        let of_kind = paths.iter().filter(|path| path.setting() == row.name());
        block.put(row, of_kind);
    }
    block.put(&matches::METHOD, methods);
    block.put(&matches::HEADER, headers);
    block.put(&matches::QUERY_PARAM, query_params);
}

fn put_service(
    block: &mut Block<'_>,
    model: &Model,
    service: &Service,
    form: &Setting<ServiceForm>,
) {
    let word = |word: &str| SettingValue::Text(word.to_owned());
    match service {
        Service::Upstream(index) => {
            block.put(&routes::SERVICE_TYPE, [form]);
            if let Some(upstream) = model.upstream(index.value) {
                block.put_value(&routes::UPSTREAM, word(&upstream.name), index.origin);
            }
        }
        Service::Builtin(handler) => {
            block.put_value(&routes::SERVICE_TYPE, word("builtin"), handler.origin);
            block.put(&routes::BUILTIN_HANDLER, [handler]);
        }
        Service::Static(files) => {
            let StaticFiles {
                place: _,
                root,
                index,
                fallback,
                precompressed,
            } = files;
            block.put_value(&routes::SERVICE_TYPE, word("static"), root.origin);
            block.put(&routes::STATIC_ROOT, [root]);
            block.put(&routes::STATIC_INDEX, [index]);
            block.put(&routes::STATIC_FALLBACK, fallback);
            block.put(&routes::STATIC_PRECOMPRESSED, [precompressed]);
        }
    }
}

fn put_breaker(block: &mut Block<'_>, breaker: &CircuitBreaker) {
    let CircuitBreaker {
        place: _,
        failure_threshold,
        timeout,
        success_threshold,
        half_open_max_requests,
    } = breaker;
    block.put(&circuit_breaker::FAILURE_THRESHOLD, [failure_threshold]);
    block.put(&circuit_breaker::TIMEOUT, [timeout]);
    block.put(&circuit_breaker::SUCCESS_THRESHOLD, [success_threshold]);
    block.put(
        &circuit_breaker::HALF_OPEN_MAX_REQUESTS,
        [half_open_max_requests],
    );
}
