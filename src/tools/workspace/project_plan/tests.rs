//! Plans over a real store.
