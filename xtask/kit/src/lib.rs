//! Paths, commands, messages and errors of developer tasks.

pub mod command;
pub mod folder;
pub mod llvm_profdata;
pub mod task_error;
pub mod terminal;
pub mod workspace;
