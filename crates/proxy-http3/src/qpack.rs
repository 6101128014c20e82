//! QPACK without a dynamic table. [RFC 9204]

mod integer;
mod section;
mod static_table;
mod writer;

pub(crate) use integer::read as read_integer;
pub use section::{Field, FieldSection, SectionLimits};
pub(crate) use writer::SectionWriter;
