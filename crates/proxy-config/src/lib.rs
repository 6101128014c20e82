//! KDL text to a model, or every fault with its place and a way to mend it.
