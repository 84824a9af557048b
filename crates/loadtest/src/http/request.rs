//! The requests that are sent: one request, or a list of requests with weights.

use std::fmt;
use std::path::Path;

pub use http::{HeaderName, HeaderValue, Method};
use http::{Uri, header};
use serde::Deserialize;

use super::template::Template;
use crate::check::{Check, CheckError, MAX_FILE, text_or_file};

/// A request that is sent many times, each time with another payload in its placeholders.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its method.
    pub method: Method,
    /// Path and query; `{}` is a placeholder for the payload.
    pub path: String,
    /// Header lines, in order. A `Host` line replaces the one with the target's address.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Its body, if it has one.
    pub body: Option<Template>,
    /// The check of the replies.
    pub check: Check,
    /// How often the request is sent, compared with the other requests in the list.
    pub weight: f64,
}

/// Why something is not a request.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The text is not a method.
    #[error("{0:?} is not a method; use for example GET or POST")]
    Method(String),
    /// The text is not a header line.
    #[error("{0:?} is not a header; write it as 'Name: value'")]
    Header(String),
    /// The header says where the body ends, which only the tester knows.
    #[error("the tester sets {0} itself, from the body; leave this header out")]
    Framing(HeaderName),
    /// The path does not begin with `/`, or contains a character that must be escaped.
    #[error("{0:?} is not a path; begin it with /, as in /v1/batch, and write special characters as %XX")]
    Path(String),
    /// The weight is not above 0.
    #[error("a weight of {0}; give a number above 0, such as 1 or 0.5")]
    Weight(f64),
    /// The text is not a check.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The reply must equal the message, but the request does not contain the message.
    #[error(
        "the check echo needs a message to compare with; write {{}} where it goes, in the path or in the body"
    )]
    NothingToEcho,
    /// A file cannot be read.
    #[error("cannot read {0}")]
    File(String, #[source] std::io::Error),
    /// The file does not have the form of a list of requests.
    #[error("{0} is not a list of requests; docs/load-testing.md shows one")]
    Malformed(String, #[source] toml::de::Error),
    /// The list has no requests.
    #[error("{0} has no [[request]]; docs/load-testing.md shows a list")]
    Empty(String),
    /// A request in a list is wrong.
    #[error("request {number} of {file}")]
    InList {
        /// The number of the request, counted from 1.
        number: usize,
        /// The file.
        file: String,
        /// What is wrong with the request.
        source: Box<RequestError>,
    },
}

impl Request {
    /// `GET` of a path, without checks of the reply's content.
    pub fn get(path: &str) -> Request {
        Request {
            method: Method::GET,
            path: path.to_owned(),
            headers: Vec::new(),
            body: None,
            check: Check::Success,
            weight: 1.0,
        }
    }

    /// Whether the path or the body has a placeholder for the payload. Headers can have one too, but do not count here.
    pub fn has_placeholder(&self) -> bool {
        Template::new(self.path.as_bytes()).has_placeholder()
            || self.body.as_ref().is_some_and(Template::has_placeholder)
    }
}

/// Reads a method.
///
/// # Errors
/// If the text contains characters that a method cannot have.
pub fn method(text: &str) -> Result<Method, RequestError> {
    text.parse().map_err(|_| RequestError::Method(text.to_owned()))
}

/// Reads a header line, `Name: value`.
///
/// # Errors
/// If the text is not a header line, or if it is a header that the tester sets itself, from the body.
pub fn header(line: &str) -> Result<(HeaderName, HeaderValue), RequestError> {
    let malformed = || RequestError::Header(line.to_owned());
    let (name, value) = line.split_once(':').ok_or_else(malformed)?;
    let name = name.trim().parse().map_err(|_| malformed())?;
    let value = value.trim().parse().map_err(|_| malformed())?;
    if [header::CONTENT_LENGTH, header::TRANSFER_ENCODING].contains(&name) {
        return Err(RequestError::Framing(name));
    }
    Ok((name, value))
}

/// Reads a body, as users type it: a text, or `@FILE`. A relative path starts at `folder`.
pub fn body(text: &str, folder: &Path) -> Result<Template, RequestError> {
    let bytes = text_or_file(text, folder).map_err(|(path, error)| RequestError::File(path, error))?;
    Ok(Template::new(&bytes))
}

/// A file with a list of requests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    request: Vec<Entry>,
}

/// A request in the list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table [[request]] with `path`")]
struct Entry {
    method: Option<String>,
    path: String,
    #[serde(default)]
    headers: std::collections::BTreeMap<String, String>,
    body: Option<String>,
    check: Option<String>,
    weight: Option<Weight>,
}

/// A number. It is an enum only so that the error for any other value says what is accepted.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "weight is a number above 0, such as 1 or 0.5")]
enum Weight {
    Number(f64),
}

/// Reads a list of requests. Each request gets `headers`, followed by its own headers. A header of its own replaces the
/// ones with the same name in `headers`. Relative paths in the list start at the folder of the list.
///
/// # Errors
/// If the file cannot be read, or something in it is not a request.
pub fn read_list(path: &Path, headers: &[(HeaderName, HeaderValue)]) -> Result<Vec<Request>, RequestError> {
    let file = path.display().to_string();
    let text = framewire_files::read_text(path, MAX_FILE)
        .map_err(|error| RequestError::File(file.clone(), error))?;
    let list: List = toml::from_str(&text).map_err(|error| RequestError::Malformed(file.clone(), error))?;
    if list.request.is_empty() {
        return Err(RequestError::Empty(file));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let requests = list.request.into_iter().enumerate().map(|(index, entry)| {
        entry.read(folder, headers).map_err(|source| RequestError::InList {
            number: index + 1,
            file: file.clone(),
            source: Box::new(source),
        })
    });
    requests.collect()
}

impl Entry {
    fn read(self, folder: &Path, common: &[(HeaderName, HeaderValue)]) -> Result<Request, RequestError> {
        let own = self.headers.iter().map(|(name, value)| header(&format!("{name}: {value}")));
        let own: Vec<_> = own.collect::<Result<_, _>>()?;
        let replaced = |name: &HeaderName| own.iter().any(|(own, _)| own == name);
        let common = common.iter().filter(|(name, _)| !replaced(name)).cloned();
        let headers: Vec<_> = common.chain(own.iter().cloned()).collect();
        let parsed: Option<Uri> = self.path.parse().ok();
        // `Uri` accepts a fragment, and drops it. A request has none.
        if !self.path.starts_with('/') || self.path.contains('#') || parsed.is_none() {
            return Err(RequestError::Path(self.path));
        }
        let weight = self.weight.map_or(1.0, |Weight::Number(weight)| weight);
        if !(weight.is_finite() && weight > 0.0) {
            return Err(RequestError::Weight(weight));
        }
        let body = self.body.map(|text| body(&text, folder)).transpose()?;
        let default = if body.is_some() { Method::POST } else { Method::GET };
        let mut request = Request { headers, body, weight, ..Request::get(&self.path) };
        request.method = self.method.map_or(Ok(default), |text| method(&text))?;
        request.check = match self.check {
            Some(text) => Check::parse(&text, folder)?,
            None if request.has_placeholder() => Check::Echo,
            None => Check::Success,
        };
        if request.check == Check::Echo && !request.has_placeholder() {
            return Err(RequestError::NothingToEcho);
        }
        Ok(request)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Result<Vec<Request>, RequestError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("body.json"), r#"{"id": "{}"}"#).unwrap();
        let path = folder.path().join("list.toml");
        std::fs::write(&path, text).unwrap();
        read_list(&path, &[header("Authorization: Bearer x").unwrap()])
    }

    #[test]
    fn a_list_has_methods_headers_bodies_checks_and_weights() {
        let text = r#"
            [[request]]
            path = "/v1/emulator"
            weight = 3

            [[request]]
            path = "/v1/batch?x={}"
            headers = { "Content-Type" = "application/json" }
            body = "@body.json"
            check = "contains=results"
        "#;
        let [one, two] = &list(text).unwrap()[..] else { panic!("two requests") };
        assert_eq!(
            (one.to_string(), one.weight, &one.check),
            ("GET /v1/emulator".to_owned(), 3.0, &Check::Success)
        );
        assert_eq!(two.method, Method::POST);
        assert_eq!(two.headers.len(), 2);
        assert!(two.has_placeholder() && two.body.as_ref().is_some_and(Template::has_placeholder));
        assert_eq!(two.check.to_string(), "contains=results");
    }

    #[test]
    fn a_header_of_a_request_replaces_the_one_that_all_requests_have() {
        let one = &list("[[request]]\npath = '/'\nheaders = { authorization = 'Basic y' }").unwrap()[0];
        assert_eq!(one.headers, [header("Authorization: Basic y").unwrap()]);
    }

    #[test]
    fn a_header_that_contradicts_the_length_of_the_body_is_refused() {
        for line in ["Content-Length: 3", "transfer-encoding: chunked"] {
            assert!(matches!(header(line), Err(RequestError::Framing(_))), "{line}");
        }
    }

    #[test]
    fn a_list_that_cannot_be_used_says_which_request_and_why() {
        for (text, reason) in [
            ("", "has no [[request]]"),
            ("[[request]]\nmethod = 'GET'", "is not a list of requests"),
            ("[[request]]\npath = '/'\nverb = 'GET'", "is not a list of requests"),
            ("[[request]]\npath = 'x'", "request 1 of"),
            ("[[request]]\npath = '/a#b'", "request 1 of"),
            ("[[request]]\npath = '/'\n[[request]]\npath = '/'\nweight = 0", "request 2 of"),
            ("[[request]]\npath = '/'\nheaders = { 'a b' = 'c' }", "request 1 of"),
            ("[[request]]\npath = '/'\nbody = '@none'", "request 1 of"),
            ("[[request]]\npath = '/'\ncheck = 'echo'", "request 1 of"),
        ] {
            let error = list(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
