//! Writes an operation of the OpenAPI document as an HTML form.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::access::login::escaped;

/// How many levels of nested schemas an example shows.
const DEPTH: usize = 6;

/// A description as HTML. Text between backticks becomes code.
pub(super) fn with_code(text: &str) -> String {
    let parts = text.split('`').map(escaped).enumerate();
    parts.map(|(index, part)| if index % 2 == 1 { format!("<code>{part}</code>") } else { part }).collect()
}

/// An example as HTML: a text without quotes, and anything else as indented JSON.
pub(super) fn shown_example(example: &Value) -> String {
    match example {
        Value::String(text) => escaped(text),
        example => escaped(&serde_json::to_string_pretty(example).unwrap_or_default()),
    }
}

/// Writes the forms for an OpenAPI document.
pub(super) struct FormWriter<'a> {
    pub(super) document: &'a Value,
}

impl<'a> FormWriter<'a> {
    /// All operations: path, method and description.
    pub(super) fn operations(&self) -> impl Iterator<Item = (&'a str, &'static str, &'a Value)> {
        const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];
        let paths = self.document["paths"].as_object().into_iter().flatten();
        paths.flat_map(|(path, item)| {
            METHODS.into_iter().filter_map(move |method| Some((path.as_str(), method, item.get(method)?)))
        })
    }

    pub(super) fn write(&self, out: &mut String, path: &str, method: &str, operation: &Value) {
        let text = |name: &str| escaped(operation[name].as_str().unwrap_or_default());
        let shown = |name: &str| with_code(operation[name].as_str().unwrap_or_default());
        let parameters: Vec<&Value> =
            operation["parameters"].as_array().into_iter().flatten().map(|one| self.resolved(one)).collect();
        let takes_emulator = parameters.iter().any(|parameter| parameter["name"] == "emulator");
        let body = self.resolved(&operation["requestBody"]);
        // If one of the content types of the body is text, the form uses it, because a field of a form contains text.
        let content = body["content"].as_object().and_then(|all| {
            let text = all.iter().find(|(kind, _)| kind.starts_with("text/"));
            text.or_else(|| all.iter().next())
        });
        let kind = content.map_or("", |(kind, _)| kind);
        // Writing to a string cannot fail, here and below.
        let _ = write!(
            out,
            "<details id=\"{id}\" class=\"{method}\"><summary><span class=\"method\">{upper}</span><span \
             class=\"path\">{path}</span><span class=\"what\">{summary}</span></summary>\n<form data-path=\"{path}\" \
             data-method=\"{method}\" data-type=\"{kind}\"{chosen}>\n",
            id = text("operationId"),
            upper = method.to_uppercase(),
            path = escaped(path),
            summary = shown("summary"),
            kind = escaped(kind),
            chosen = if takes_emulator { " data-emulator=\"1\"" } else { "" },
        );
        if !text("description").is_empty() {
            let _ = writeln!(out, "<p>{}</p>", shown("description"));
        }
        for (index, parameter) in parameters.iter().enumerate().filter(|(_, one)| one["name"] != "emulator") {
            self.write_parameter(out, &format!("{}-{index}", text("operationId")), parameter);
        }
        if let Some((kind, content)) = content {
            let example = content.get("example").cloned();
            let example = example.unwrap_or_else(|| self.example(&content["schema"], DEPTH));
            let _ = writeln!(
                out,
                "<div class=\"field\"><label for=\"{id}-body\">body</label><textarea id=\"{id}-body\" \
                 spellcheck=\"false\">{example}</textarea><span class=\"doc\">{kind}. {doc}</span></div>",
                id = text("operationId"),
                example = shown_example(&example),
                kind = escaped(kind),
                doc = with_code(body["description"].as_str().unwrap_or_default()),
            );
            self.write_body_fields(out, &content["schema"]);
        }
        let _ = writeln!(
            out,
            "<button class=\"send\">Send</button><button type=\"button\" class=\"stop\">Stop</button><button \
             type=\"button\" class=\"copy\">Copy</button>\n<output></output>\n</form>"
        );
        self.write_replies(out, operation);
        out.push_str("</details>\n");
    }

    fn write_parameter(&self, out: &mut String, id: &str, parameter: &Value) {
        let name = escaped(parameter["name"].as_str().unwrap_or_default());
        let place = parameter["in"].as_str().unwrap_or("query");
        let schema = self.without_null(&parameter["schema"]);
        let required = if parameter["required"] == true { " required" } else { "" };
        let mark = if required.is_empty() { "" } else { " <span class=\"must\">required</span>" };
        let (many, more) = match schema.get("items").map(|items| &self.resolved(items)["enum"]) {
            None => ("", ""),
            // Free texts, such as expressions, can contain spaces and commas.
            Some(Value::Null) => (" data-many=\"texts\"", " Separate several values with semicolons."),
            Some(_) => (" data-many=\"words\"", " Separate several values with spaces or commas."),
        };
        let values = schema["enum"].as_array();
        let _ = write!(out, "<div class=\"field\"><label for=\"{id}\">{name}{mark}</label>");
        let choices: Option<Vec<&str>> = match (values, schema["type"].as_str()) {
            (Some(values), _) => Some(values.iter().filter_map(Value::as_str).collect()),
            (None, Some("boolean")) => Some(vec!["true", "false"]),
            _ => None,
        };
        match choices {
            Some(choices) => {
                let _ = write!(
                    out,
                    "<select id=\"{id}\" name=\"{name}\" data-in=\"{place}\"{required}><option value=\"\"></option>"
                );
                for choice in choices {
                    let _ = write!(out, "<option>{}</option>", escaped(choice));
                }
                out.push_str("</select>");
            }
            None => {
                let shown = match &schema["default"] {
                    Value::Null => String::new(),
                    default => format!(" placeholder=\"{}\"", escaped(&default.to_string())),
                };
                let _ = write!(
                    out,
                    "<input id=\"{id}\" name=\"{name}\" data-in=\"{place}\"{required}{many}{shown}>"
                );
            }
        }
        let doc = with_code(parameter["description"].as_str().unwrap_or_default());
        let _ = writeln!(out, "<span class=\"doc\">{doc}{more}</span></div>");
    }

    /// The value that a `$ref` refers to. Any other value is returned unchanged.
    pub(super) fn resolved(&self, value: &'a Value) -> &'a Value {
        let place = value["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
        place.and_then(|place| self.document.pointer(place)).unwrap_or(value)
    }

    /// The schema to which `schema` refers. If that is a choice between null and one other schema, the other schema.
    pub(super) fn without_null(&self, schema: &'a Value) -> &'a Value {
        let schema = self.resolved(schema);
        let mut others = schema["oneOf"].as_array().into_iter().flatten().filter(|one| one["type"] != "null");
        match (others.next(), others.next()) {
            (Some(other), None) => self.resolved(other),
            _ => schema,
        }
    }

    /// An example of a schema. An object has its required fields, or all fields if the schema does not say which fields
    /// are required.
    fn example(&self, schema: &'a Value, depth: usize) -> Value {
        let schema = self.resolved(schema);
        if let Some(example) = schema.get("example").or_else(|| schema.get("default")) {
            return example.clone();
        }
        if depth == 0 {
            return Value::Null;
        }
        if let Some(first) = schema["examples"].get(0).or_else(|| schema["enum"].get(0)) {
            return first.clone();
        }
        for of in ["oneOf", "anyOf", "allOf"] {
            if let Some(one) =
                schema[of].as_array().and_then(|all| all.iter().find(|one| one["type"] != "null"))
            {
                return self.example(one, depth - 1);
            }
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.first().and_then(Value::as_str),
            kind => kind.as_str(),
        };
        match kind {
            Some("object") => {
                let required = schema["required"].as_array();
                let is_required = |name: &str| required.is_none_or(|all| all.iter().any(|one| one == name));
                let fields = schema["properties"].as_object().into_iter().flatten();
                let fields = fields.filter(|(name, _)| is_required(name));
                let mut example = Map::new();
                example.extend(fields.map(|(name, schema)| (name.clone(), self.example(schema, depth - 1))));
                Value::Object(example)
            }
            Some("array") => json!([self.example(&schema["items"], depth - 1)]),
            Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(0)),
            Some("boolean") => json!(false),
            Some("string") => json!(""),
            _ => Value::Null,
        }
    }
}
