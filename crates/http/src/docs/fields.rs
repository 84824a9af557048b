//! Describes the bodies and replies of operations, field by field, from their schemas.

use std::fmt::Write;

use serde_json::Value;

use super::form::{FormWriter, shown_example, with_code};
use crate::access::login::escaped;

/// How many levels of nested schemas are described.
const DEPTH: usize = 4;
/// If a schema has more alternatives than this, they are not described; `/openapi.json` has all of them.
const MAX_ALTERNATIVES: usize = 6;

impl<'a> FormWriter<'a> {
    pub(super) fn write_body_fields(&self, out: &mut String, schema: &'a Value) {
        let mut fields = String::new();
        self.write_fields(&mut fields, schema, DEPTH);
        if !fields.is_empty() {
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(
                out,
                "<details class=\"schema\"><summary>Fields of the body</summary>\n{fields}</details>"
            );
        }
    }

    /// Writes the replies of an operation: their fields, and an example if the document has one.
    pub(super) fn write_replies(&self, out: &mut String, operation: &'a Value) {
        let mut replies = String::new();
        for (status, reply) in operation["responses"].as_object().into_iter().flatten() {
            let reply = self.resolved(reply);
            let doc = with_code(reply["description"].as_str().unwrap_or_default());
            let _ = writeln!(replies, "<p><strong>{}</strong> {doc}</p>", escaped(status));
            for (kind, content) in reply["content"].as_object().into_iter().flatten() {
                if kind.contains("json") {
                    self.write_fields(&mut replies, &content["schema"], DEPTH);
                } else {
                    let _ = writeln!(replies, "<p><code>{}</code></p>", escaped(kind));
                }
                if let Some(example) = content.get("example") {
                    let _ = writeln!(replies, "<pre tabindex=\"0\">{}</pre>", shown_example(example));
                }
            }
        }
        if !replies.is_empty() {
            let _ =
                writeln!(out, "<details class=\"schema\"><summary>Replies</summary>\n{replies}</details>");
        }
    }

    /// Writes the fields of an object. For a list, `oneOf`, `anyOf` or `allOf`, writes the fields of the objects in it.
    /// Other schemas have no fields. `depth` limits how many levels are described.
    fn write_fields(&self, out: &mut String, schema: &'a Value, depth: usize) {
        if depth == 0 {
            return;
        }
        let schema = self.without_null(schema);
        if let Some(items) = schema.get("items") {
            return self.write_fields(out, items, depth);
        }
        for of in ["oneOf", "anyOf", "allOf"] {
            let forms = schema[of].as_array().map_or(&[][..], Vec::as_slice);
            if forms.len() > MAX_ALTERNATIVES {
                let _ = writeln!(
                    out,
                    "<p>One of {} forms; see <a href=\"/openapi.json\">/openapi.json</a>.</p>",
                    forms.len()
                );
                continue;
            }
            for one in forms {
                self.write_fields(out, one, depth - 1);
            }
        }
        let Some(fields) = schema["properties"].as_object().filter(|fields| !fields.is_empty()) else {
            return;
        };
        let required = schema["required"].as_array();
        out.push_str("<ul class=\"fields\">\n");
        for (name, field) in fields {
            let must = required.is_some_and(|all| all.iter().any(|one| one == name));
            let _ = write!(
                out,
                "<li><code>{}</code> <span class=\"type\">{}{}</span> {}",
                escaped(name),
                escaped(&self.kind(field)),
                if must { "" } else { ", optional" },
                with_code(self.description(field)),
            );
            self.write_fields(out, field, depth - 1);
            out.push_str("</li>\n");
        }
        out.push_str("</ul>\n");
    }

    /// The description of a field. A description next to a reference comes first, because it is more specific than that
    /// of the schema that the reference points to.
    fn description(&self, schema: &'a Value) -> &'a str {
        let own = schema["description"].as_str();
        own.or_else(|| self.without_null(schema)["description"].as_str()).unwrap_or_default()
    }

    /// The type of a field in words, such as `list of integer`.
    fn kind(&self, schema: &'a Value) -> String {
        let inner = self.without_null(schema);
        if let Some(values) = inner["enum"].as_array() {
            return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" or ");
        }
        if let Some(items) = inner.get("items") {
            return format!("list of {}", self.kind(items));
        }
        for of in ["oneOf", "anyOf"] {
            if let Some(forms) = inner[of].as_array() {
                let forms = forms.iter().filter(|form| form["type"] != "null");
                let mut kinds: Vec<String> = forms.map(|form| self.kind(form)).collect();
                kinds.dedup();
                return kinds.join(" or ");
            }
        }
        match &inner["type"] {
            Value::String(kind) => kind.clone(),
            Value::Array(kinds) => {
                let kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
                kinds.collect::<Vec<_>>().join(" or ")
            }
            _ => "any value".to_owned(),
        }
    }
}
