//! Access to the fields of a block; each read takes its fields, so the unread ones remain.

use super::block::Block;
use super::decoder::Decoder;
use super::field::Field;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::kdl::Node;
use proxy_model::registry::{self, Spec};
use proxy_model::{FileId, Place};

impl<'t> Block<'t> {
    /// Returns true if the block has a field that is not yet read and belongs to `path`.
    pub(super) fn has(&self, path: &str) -> bool {
        self.fields.borrow().iter().any(|field| field.path == path)
    }

    /// Returns true if an unknown name is probably a misspelling of `path`'s name.
    pub(super) fn is_misread(&self, path: &str) -> bool {
        self.suggested.contains(&path)
    }

    /// The place of the first unread field of `path`.
    pub(super) fn place_of(&self, d: &Decoder<'_, '_>, path: &str) -> Option<Place> {
        let fields = self.fields.borrow();
        let field = fields.iter().find(|field| field.path == path);
        field.map(|field| field.place(d))
    }

    /// Takes all fields of `path`.
    pub(super) fn take(&self, path: &str) -> Vec<Field<'t>> {
        self.take_if(|field| field.path == path)
    }

    fn take_if(&self, wanted: impl Fn(&Field<'t>) -> bool) -> Vec<Field<'t>> {
        // Most settings are absent; looking them up must not allocate.
        if !self.fields.borrow().iter().any(&wanted) {
            return Vec::new();
        }
        let fields = self.fields.take();
        let (taken, left) = fields.into_iter().partition(wanted);
        self.fields.replace(left);
        taken
    }

    /// The block `spec` within this one, merged from all nodes of that name. Settings of it that
    /// are written directly in this block, where the registry allows that, are included.
    pub(super) fn inner<D>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<registry::Block, D>,
    ) -> Option<Self> {
        let block = self.merged(d, spec)?;
        block.no_arguments(d);
        Some(block)
    }

    /// Like [`Self::inner`], for a block that takes arguments or is a setting with a block.
    pub(super) fn merged<K, D>(&self, d: &mut Decoder<'t, '_>, spec: &Spec<K, D>) -> Option<Self> {
        let fields = self.take(spec.path);
        let is_loose = |field: &Field<'_>| parent(field.path) == spec.path;
        if fields.is_empty() && !self.fields.borrow().iter().any(is_loose) {
            return None;
        }
        let nodes = fields
            .iter()
            .filter_map(|field| field.as_block(d))
            .collect();
        Some(self.gathered(d, spec, nodes))
    }

    /// The block `spec` made from `nodes`, with its settings that are written directly in this
    /// block.
    pub(super) fn gathered<K, D>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<K, D>,
        nodes: Vec<(FileId, &'t Node)>,
    ) -> Self {
        let block = Self::open(d, spec.path, nodes);
        let loose = self.take_if(|field| parent(field.path) == spec.path);
        block.fields.borrow_mut().extend(loose);
        block
    }

    /// Every block called `spec` within this one, unmerged.
    pub(super) fn each<D>(
        &self,
        d: &mut Decoder<'t, '_>,
        spec: &Spec<registry::Block, D>,
    ) -> Vec<Self> {
        let fields = self.take(spec.path);
        let nodes: Vec<_> = fields
            .iter()
            .filter_map(|field| field.as_block(d))
            .collect();
        let blocks = nodes
            .into_iter()
            .map(|node| Self::open(d, spec.path, vec![node]));
        blocks.collect()
    }

    /// The first of `fields`; reports each further one as repeated.
    pub(super) fn once(&self, d: &mut Decoder<'t, '_>, fields: &[Field<'t>]) -> Option<Field<'t>> {
        let (first, further) = fields.split_first()?;
        for field in further {
            let place = field.place(d);
            let message = format!("`{}` is set twice{}", field.name(), self.within(d));
            let fault = Diagnostic::new(DiagnosticCode::RepeatedSetting, place, message);
            d.push(
                fault
                    .label("again here")
                    .related(first.place(d), "first here"),
            );
        }
        Some(*first)
    }

    /// Reports every field that no decoder has read, so that none is ignored silently.
    pub(super) fn close(self, d: &mut Decoder<'t, '_>) {
        for field in self.fields.borrow().iter() {
            let place = field.place(d);
            let message = format!("`{}` has no effect{}", field.name(), self.within(d));
            d.fault(DiagnosticCode::Conflict, place, message);
        }
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(parent, _)| parent)
}
