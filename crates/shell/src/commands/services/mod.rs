//! The user's services: containers, clusters, the code host, the init system.
//!
//! Reading verbs against the endpoint that the user has configured change nothing;
//! `required_service` determines which of them need the service itself. Options that choose another
//! endpoint, configuration or credentials, open a browser, or print tokens and secrets are not
//! accepted.

pub(super) mod cluster;
pub(super) mod code_host;
pub(super) mod containers;
pub(super) mod init;
pub(super) mod required_service;
