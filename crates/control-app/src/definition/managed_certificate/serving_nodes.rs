//! Nodes that serve a host without TLS, and therefore can answer its HTTP-01 challenge.

use crate::app::App;
use crate::app::acme::plain_hosts::PlainHosts;
use crate::configuration::check;
use crate::error::Error;
use control_domain::{ManagedCertificate, Refusal};
use control_store::ServingNode;
use control_wire::BundleId;
use std::sync::Arc;

impl App {
    /// The online nodes of the project that serve `host` without TLS.
    pub(crate) async fn nodes_of_host(
        &self,
        value: &ManagedCertificate,
        host: &str,
    ) -> Result<Vec<ServingNode>, Error> {
        let project = value.tenant.project.ok_or(Refusal::NotFound)?;
        let since = self.heartbeat_interval.online_since(self.now());
        let mut nodes = self
            .store
            .read()
            .await?
            .serving_nodes(project, since)
            .await?;
        let mut bundles: Vec<BundleId> = nodes.iter().map(|node| node.bundle).collect();
        bundles.sort_unstable();
        bundles.dedup();
        let mut serving = Vec::with_capacity(bundles.len());
        for bundle in bundles {
            if self.plain_hosts(bundle).await?.serve(host) {
                serving.push(bundle);
            }
        }
        nodes.retain(|node| serving.contains(&node.bundle));
        Ok(nodes)
    }

    /// Hosts of a bundle, cached: the files of a bundle never change.
    async fn plain_hosts(&self, id: BundleId) -> Result<Arc<PlainHosts>, Error> {
        if let Some(known) = self.plain_hosts.get(&id) {
            return Ok(known);
        }
        let Some(bundle) = self.store.read().await?.bundle(id).await? else {
            return Ok(Arc::default());
        };
        let org = bundle.value.tenant.org;
        let contents = self.contents(&bundle.value).await?;
        let found = self.heavy(org, move || {
            let checked = check(&contents.files);
            PlainHosts::new(checked.model.as_deref())
        });
        let found = Arc::new(found.await?);
        self.plain_hosts.insert(id, Arc::clone(&found));
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_bundle::{ENTRY_FILE, Files};

    fn hosts(text: &str) -> PlainHosts {
        let files: Files = [(ENTRY_FILE.to_owned(), text.as_bytes().to_vec())].into();
        let checked = check(&files);
        assert!(checked.model.is_some(), "{:?}", checked.diagnostics);
        PlainHosts::new(checked.model.as_deref())
    }

    #[test]
    fn hosts_are_those_of_routes_if_a_listener_has_no_tls() {
        let plain = hosts(
            r#"
            listeners { listener "http" { address "127.0.0.1:8080" } }
            routes {
                route "shop" { matches { host "shop.example" "*.shop.example" }; respond 200 "shop" }
            }
            "#,
        );
        assert!(plain.serve("shop.example"));
        assert!(plain.serve("www.shop.example"));
        assert!(!plain.serve("bank.example"));
        let all = hosts(
            r#"
            listeners { listener "http" { address "127.0.0.1:8080" } }
            routes { route "all" { respond 200 "any" } }
            "#,
        );
        assert!(all.serve("bank.example"));
        let relayed = hosts(
            r#"
            listeners { listener "raw" { address "127.0.0.1:8080"; protocol "tcp" } }
            routes { route "raw" { listeners "raw"; upstream "app" } }
            upstreams { upstream "app" { target "10.0.0.1:3000" } }
            "#,
        );
        assert!(!relayed.serve("bank.example"));
    }
}
