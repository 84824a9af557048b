//! What RFC 9112 has a server refuse and hyper lets pass: requests that another server in front of this one might take for
//! something else.

use axum::http::header::{HOST, ORIGIN, TRANSFER_ENCODING};
use axum::http::{HeaderMap, StatusCode, Uri, Version};

use crate::failure::Failure;

/// Refuses a head that can be understood in two ways. The connection must end then.
pub(crate) fn check(version: Version, target: &Uri, headers: &HeaderMap) -> Result<(), Failure> {
    check_scheme(target)?;
    check_host(version, headers)?;
    check_origin(headers)?;
    check_framing(headers)
}

/// RFC 9110, 7.4: a target may name a scheme, and this server is asked for no other.
fn check_scheme(target: &Uri) -> Result<(), Failure> {
    match target.scheme_str() {
        None | Some("http" | "https") => Ok(()),
        Some(other) => Err(Failure::bad_request(format!("{other}: only http and https are served"))),
    }
}

/// RFC 9112, 3.2: exactly one, and one that could be in an address.
fn check_host(version: Version, headers: &HeaderMap) -> Result<(), Failure> {
    let mut hosts = headers.get_all(HOST).iter();
    let (first, second) = (hosts.next(), hosts.next());
    if second.is_some() || first.is_none() && version >= Version::HTTP_11 {
        return Err(Failure::bad_request("a request has one Host header, such as Host: localhost"));
    }
    let sound =
        |host: &[u8]| host.iter().all(|byte| byte.is_ascii_graphic() && !b"/@?#\\\"<>,".contains(byte));
    if first.is_none_or(|host| sound(host.as_bytes())) {
        return Ok(());
    }
    Err(Failure::bad_request("Host: a name or an address is accepted, with or without a port"))
}

/// Browsers name one page. Of several origins only the first would be judged.
fn check_origin(headers: &HeaderMap) -> Result<(), Failure> {
    if headers.get_all(ORIGIN).iter().nth(1).is_some() {
        return Err(Failure::bad_request("a request has one Origin header at most"));
    }
    Ok(())
}

/// RFC 9112, 6: how long the body is must not be said twice. hyper refuses lengths that differ; `framing` refuses equal
/// ones, which hyper takes for one.
fn check_framing(headers: &HeaderMap) -> Result<(), Failure> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => {
            let message = "Transfer-Encoding: chunked is accepted, once and with nothing else";
            Err(Failure::new(StatusCode::NOT_IMPLEMENTED, message))
        }
    }
}
