//! The `tracing` layer.

use super::repetitions::EventKind;
use super::{ANSWER, Events};
use proxy_telemetry::EventFields;
use std::fmt::{Debug, Write};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

impl<S: Subscriber> Layer<S> for Events {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut visitor = EventVisitor::default();
        event.record(&mut visitor);
        let EventVisitor { message, fields } = visitor;
        let kind = EventKind {
            level: level(*metadata.level()),
            is_answer: metadata.target() == ANSWER,
            message,
        };
        self.log(kind, fields);
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARN",
        Level::INFO => "INFO",
        Level::DEBUG => "DEBUG",
        Level::TRACE => "TRACE",
    }
}

/// The message and fields of an event.
#[derive(Default)]
struct EventVisitor {
    message: String,
    fields: EventFields,
}

impl Visit for EventVisitor {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            // Writing to a string cannot fail.
            write!(self.message, "{value:?}").unwrap_or_default();
        } else {
            self.fields.text(field.name(), &format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message.push_str(value);
        } else {
            self.fields.text(field.name(), value);
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.fields.plain(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.fields.plain(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.fields.plain(field.name(), value);
    }
}
