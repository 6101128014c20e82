//! Common parts of developer tasks: paths, commands, output and errors.

pub mod command;
pub mod folder;
pub mod llvm_profdata;
pub mod task_error;
pub mod terminal;
pub mod workspace;
