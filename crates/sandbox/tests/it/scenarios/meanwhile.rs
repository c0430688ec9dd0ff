//! What changes outside while a sandbox stands.
