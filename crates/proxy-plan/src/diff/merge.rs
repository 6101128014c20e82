//! Joining of cells with equal answers into regions.

use super::answer::Answer;
use super::cells::conditions::FieldStates;
use super::cells::paths::{ASTERISK, PathCell};
use super::region::{Probe, Region};
use super::rows::{ChangedRequests, grouped};
use super::search::DiffSearch;

impl DiffSearch<'_> {
    /// The regions of all cells added until now, ordered by listeners' classes, hosts and paths.
    pub(super) fn regions(&self) -> Vec<Region> {
        let found = self.found.iter().map(|found| {
            let ChangedRequests {
                class,
                host,
                path,
                fields,
                before,
                after,
            } = found;
            let key = (*class, *host, fields.clone(), before.clone(), after.clone());
            (key, path.clone())
        });
        let by_path = grouped(found).into_iter().map(|(key, paths)| {
            let (class, host, fields, before, after) = key;
            let ids: Vec<_> = paths.iter().map(PathCell::key).collect();
            ((class, ids, fields, before, after), (host, paths))
        });
        let by_host = grouped(by_path).into_iter().map(|(key, members)| {
            let (class, ids, fields, before, after) = key;
            let (hosts, mut paths): (Vec<_>, Vec<_>) = members.into_iter().unzip();
            let paths = paths.swap_remove(0);
            ((hosts, ids, fields, before, after), (class, paths))
        });
        let regions = grouped(by_host).into_iter().filter_map(|(key, members)| {
            let (hosts, _, fields, before, after) = key;
            let classes: Vec<usize> = members.iter().map(|(class, _)| *class).collect();
            let (_, paths) = members.into_iter().next()?;
            self.region(&classes, &hosts, paths, fields, [before, after])
        });
        regions.collect()
    }

    fn region(
        &self,
        classes: &[usize],
        hosts: &[usize],
        paths: Vec<PathCell>,
        fields: Vec<FieldStates>,
        [before, after]: [Answer; 2],
    ) -> Option<Region> {
        let classes: Vec<_> = classes
            .iter()
            .filter_map(|at| self.classes.get(*at))
            .collect();
        let hosts: Vec<_> = hosts
            .iter()
            .filter_map(|at| self.hosts.get(*at).cloned())
            .collect();
        // A request with a host is the better example.
        let host = hosts
            .iter()
            .find(|host| !host.example.is_empty())
            .or(hosts.first())?;
        let path = paths.first()?;
        let class = classes.first()?;
        let listener = class.names.first().map(String::as_str);
        let example = Probe::new(host, path, &fields).request(listener, class.scheme);
        let all_paths = self.path_counts.get(&path.partition_id()).copied();
        let own_paths = paths.iter().filter(|one| one.example != ASTERISK).count();
        Some(Region {
            listeners: classes
                .iter()
                .flat_map(|class| class.names.clone())
                .collect(),
            is_every_host: hosts.len() == self.hosts.len(),
            hosts,
            is_every_path: all_paths == Some(own_paths),
            paths,
            fields,
            before,
            after,
            example,
        })
    }
}
