//! A configuration known to be right, and the registry of its settings.
