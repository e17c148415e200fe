//! HTTP at the edge: listener, connection guard, routing, credential, header parsing, upload and answers.
//! Nothing below this module knows HTTP.

pub mod auth;
pub mod connection;
pub mod headers;
pub mod listen;
pub mod respond;
pub mod router;
pub mod server;
pub mod service;
pub mod upload;
