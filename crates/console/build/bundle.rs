//! Joins the modules of the page into two scripts, and its styles into one sheet. Also joins a module and its imports
//! into a library for another page.
//!
//! The first script contains the module that starts the page, and the modules that it imports. The second script
//! contains the modules that are loaded with `import()` when they are first needed. Each module becomes the call of a
//! function that returns the module's exports. Its imports become constants, and its calls of `import()` become calls
//! of a function that loads the second script. Comments that begin a line, empty lines and indentation are removed.
//! Otherwise, the code does not change.
//!
//! Only the forms of `import` and `export` that the page uses are supported; any other form fails the build.

use std::collections::BTreeMap;
use std::fmt::Write;

/// The text of each file, by its name, such as `dom.js` or `style/base.css`.
pub type Sources = BTreeMap<String, String>;

/// The start of an expression that loads another module when it is first needed.
const LATER: &str = "import(\"./";

/// The scripts of the page.
#[derive(Debug)]
pub struct Scripts {
    /// The modules of the first script.
    first: String,
    /// The second script, with the modules that are loaded when they are first needed.
    pub later: String,
    /// For each module of the first script that the second script imports, the name of the variable that holds it.
    shared: Vec<String>,
}

impl Scripts {
    /// Joins `entry` and all modules that it imports or loads.
    pub fn join(sources: &Sources, entry: &str) -> Result<Scripts, String> {
        let mut joined = Joined::new(sources);
        joined.add(entry)?;
        let (first, roots) = (std::mem::take(&mut joined.text), std::mem::take(&mut joined.later));
        let first_count = joined.done.len();
        for root in &roots {
            joined.add(root)?;
        }
        if let Some(name) = joined.later.first() {
            return Err(format!("{name} is loaded by a module that is itself loaded later"));
        }
        let imported = |name: &String| joined.text.contains(&format!(" = {name};\n"));
        let shared: Vec<String> =
            joined.done[..first_count].iter().map(|name| variable(name)).filter(imported).collect();
        let entries: Vec<String> = roots.iter().map(|root| format!("{root:?}: {}", variable(root))).collect();
        let later = format!(
            "\"use strict\";\nlet made;\nexport const modules = ({{ {} }}) => made ??= (() => {{\n{}return {{ {} }};\n}})();\n",
            shared.join(", "),
            joined.text,
            entries.join(", ")
        );
        Ok(Scripts { first, later, shared })
    }

    /// The first script. It loads the second one from the URL `later`, which is relative to its own URL.
    pub fn first(&self, later: &str) -> String {
        let shared = self.shared.join(", ");
        format!(
            "\"use strict\";\nconst later = async (name) => (await import({later:?})).modules({{ {shared} }})[name];\n{}",
            self.first
        )
    }
}

/// Joins `entry` and the modules that it imports into a module with the exports of `entry`.
pub fn join_library(sources: &Sources, entry: &str) -> Result<String, String> {
    let mut joined = Joined::new(sources);
    joined.add(entry)?;
    if let Some(name) = joined.later.first() {
        return Err(format!("a library cannot load {name} with import()"));
    }
    let exports = Module::read(&sources[entry])?.exports.join(", ");
    Ok(format!("{}export const {{ {exports} }} = {};\n", joined.text, variable(entry)))
}

/// Joins the styles with these names, in this order.
pub fn join_styles<'a>(
    sources: &Sources,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<String, String> {
    let mut text = String::new();
    for name in names {
        let style =
            sources.get(name).ok_or_else(|| format!("index.html names {name}, which is not there"))?;
        text.push_str(&without_comments(style));
    }
    Ok(text)
}

struct Joined<'a> {
    sources: &'a Sources,
    /// The code of the modules that have been joined so far.
    text: String,
    /// The names of these modules, in the same order.
    done: Vec<String>,
    /// The modules whose imports are being added, to detect an import cycle.
    open: Vec<String>,
    /// The modules that the joined modules load with `import()`.
    later: Vec<String>,
}

impl<'a> Joined<'a> {
    fn new(sources: &'a Sources) -> Joined<'a> {
        Joined { sources, text: String::new(), done: Vec::new(), open: Vec::new(), later: Vec::new() }
    }

    fn add(&mut self, name: &str) -> Result<(), String> {
        if self.done.iter().any(|done| done == name) {
            return Ok(());
        }
        if self.open.iter().any(|open| open == name) {
            return Err(format!("{name} imports itself through {}", self.open.join(", ")));
        }
        let source = self.sources.get(name).ok_or_else(|| format!("{name} is imported but not there"))?;
        let module = Module::read(source).map_err(|problem| format!("{name}: {problem}"))?;
        self.open.push(name.to_owned());
        for import in &module.imports {
            self.add(&import.from)?;
        }
        self.open.pop();
        self.done.push(name.to_owned());
        self.later.extend(module.later);
        writeln!(self.text, "const {} = (() => {{", variable(name)).expect("writing to a string never fails");
        for Import { what, from } in &module.imports {
            writeln!(self.text, "const {what} = {};", variable(from))
                .expect("writing to a string never fails");
        }
        self.text.push_str(&module.body);
        writeln!(self.text, "return {{ {} }};\n}})();", module.exports.join(", "))
            .expect("writing to a string never fails");
        Ok(())
    }
}

/// The name of the variable that holds the exports of a module.
fn variable(name: &str) -> String {
    format!("module_{}", name.trim_end_matches(".js").replace(['/', '-', '.'], "_"))
}

/// An import. `what` is a name or a destructuring pattern for the exports of the module `from`.
#[derive(Debug, PartialEq, Eq)]
struct Import {
    what: String,
    from: String,
}

#[derive(Debug, Default)]
struct Module {
    imports: Vec<Import>,
    exports: Vec<String>,
    /// The modules that its code loads with `import()`.
    later: Vec<String>,
    body: String,
}

impl Module {
    fn read(source: &str) -> Result<Module, String> {
        let mut module = Module::default();
        let text = without_comments(source);
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line.starts_with("import ") {
                let mut statement = line.to_owned();
                while !statement.ends_with(';') {
                    let more = lines.next().ok_or("an import does not end")?;
                    statement.push_str(more);
                }
                module.imports.push(Import::read(&statement)?);
            } else if let Some(declaration) = line.strip_prefix("export ") {
                module.exports.push(declared(declaration)?.to_owned());
                module.body.push_str(declaration);
                module.body.push('\n');
            } else {
                module.body.push_str(line);
                module.body.push('\n');
            }
        }
        while let Some(at) = module.body.find(LATER) {
            let rest = &module.body[at + LATER.len()..];
            let name = rest.split_once("\")").ok_or("an import() does not end")?.0.to_owned();
            module.body.replace_range(at..at + LATER.len(), "later(\"");
            module.later.push(name);
        }
        if module.body.contains("import(") || module.body.contains("import.meta") {
            return Err("import.meta, and import() of anything but \"./name\", are not supported".to_owned());
        }
        Ok(module)
    }
}

impl Import {
    fn read(statement: &str) -> Result<Import, String> {
        let unknown = || format!("this form of import is not supported: {statement}");
        let (what, from) =
            statement.trim_start_matches("import ").rsplit_once(" from \"./").ok_or_else(unknown)?;
        let from = from.strip_suffix("\";").ok_or_else(unknown)?.to_owned();
        let what = match what.strip_prefix("* as ") {
            Some(name) => name.to_owned(),
            None if what.starts_with('{') && what.ends_with('}') => what.replace(" as ", ": "),
            None => return Err(unknown()),
        };
        Ok(Import { what, from })
    }
}

/// The name that an exported declaration declares.
fn declared(declaration: &str) -> Result<&str, String> {
    let kinds = ["async function ", "function ", "class ", "const "];
    let unknown = || format!("this form of export is not supported: export {declaration}");
    let rest = kinds.iter().find_map(|kind| declaration.strip_prefix(kind)).ok_or_else(unknown)?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '$').unwrap_or(rest.len());
    if end == 0 {
        return Err(unknown());
    }
    Ok(&rest[..end])
}

/// Removes comments that begin a line, empty lines, and indentation.
///
/// This would break a template literal with several lines. The page has no such literals.
fn without_comments(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let line = line.trim_start();
        if line.starts_with("/*") {
            let mut end = line;
            while !end.contains("*/") {
                end = lines.next().unwrap_or("*/");
            }
            let rest = end.split_once("*/").map_or("", |(_, rest)| rest.trim());
            if !rest.is_empty() {
                text.push_str(rest);
                text.push('\n');
            }
        } else if !line.is_empty() && !line.starts_with("//") {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> Sources {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_module_comes_after_the_modules_that_it_imports() {
        let files = sources(&[
            (
                "main.js",
                "/** Begins. */\nimport {\n  one,\n  two as second,\n} from \"./b.js\";\nimport * as c from \"./c.js\";\none(c);\n",
            ),
            (
                "b.js",
                "import { x } from \"./c.js\";\n// Comment.\nexport function one() {\n  return x;\n}\nexport const two = 2;\n",
            ),
            ("c.js", "export class x {}\nexport async function y() {}\n"),
        ]);
        let scripts = Scripts::join(&files, "main.js").expect("known forms");
        let text = scripts.first("later.js");
        let expected = "\"use strict\";\n\
            const later = async (name) => (await import(\"later.js\")).modules({  })[name];\n\
            const module_c = (() => {\nclass x {}\nasync function y() {}\nreturn { x, y };\n})();\n\
            const module_b = (() => {\nconst { x } = module_c;\nfunction one() {\nreturn x;\n}\nconst two = 2;\nreturn { one, two };\n})();\n\
            const module_main = (() => {\nconst {one,two: second,} = module_b;\nconst c = module_c;\none(c);\nreturn {  };\n})();\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn modules_that_are_loaded_later_are_in_the_second_script() {
        let files = sources(&[
            ("main.js", "import { a } from \"./a.js\";\na(async () => await import(\"./tool.js\"));\n"),
            ("a.js", "export function a() {}\n"),
            ("b.js", "export const b = 1;\n"),
            (
                "tool.js",
                "import { a } from \"./a.js\";\nimport { b } from \"./b.js\";\nexport const tool = a(b);\n",
            ),
        ]);
        let scripts = Scripts::join(&files, "main.js").expect("known forms");
        let first = "\"use strict\";\n\
            const later = async (name) => (await import(\"./later-1.js\")).modules({ module_a })[name];\n\
            const module_a = (() => {\nfunction a() {}\nreturn { a };\n})();\n\
            const module_main = (() => {\nconst { a } = module_a;\na(async () => await later(\"tool.js\"));\nreturn {  };\n})();\n";
        assert_eq!(scripts.first("./later-1.js"), first);
        let later = "\"use strict\";\nlet made;\nexport const modules = ({ module_a }) => made ??= (() => {\n\
            const module_b = (() => {\nconst b = 1;\nreturn { b };\n})();\n\
            const module_tool = (() => {\nconst { a } = module_a;\nconst { b } = module_b;\nconst tool = a(b);\nreturn { tool };\n})();\n\
            return { \"tool.js\": module_tool };\n})();\n";
        assert_eq!(scripts.later, later);
    }

    #[test]
    fn a_library_exports_what_its_module_exports() {
        let files = sources(&[
            ("code.js", "import { x } from \"./x.js\";\nexport const a = x;\nexport function b() {}\n"),
            ("x.js", "export const x = 1;\n"),
        ]);
        let text = join_library(&files, "code.js").expect("known forms");
        assert!(text.ends_with("\nexport const { a, b } = module_code;\n"), "{text}");
        assert!(text.starts_with("const module_x = "), "{text}");
    }

    #[test]
    fn unknown_forms_and_import_cycles_are_errors() {
        for (text, says) in [
            ("import x from \"./b.js\";\n", "this form of import is not supported"),
            ("import \"./b.js\";\n", "this form of import is not supported"),
            ("export default 1;\n", "this form of export is not supported"),
            ("export { a };\n", "this form of export is not supported"),
            ("export let a = 1;\n", "this form of export is not supported"),
            ("export const { a } = b;\n", "this form of export is not supported"),
            ("export const [a] = b;\n", "this form of export is not supported"),
            ("const a = await import(name);\n", "are not supported"),
            ("const a = await import(\"./none.js\");\n", "none.js is imported but not there"),
            ("const a = await import(\"./c.js\");\n", "is loaded by a module that is itself loaded later"),
            ("import { a } from \"./none.js\";\n", "none.js is imported but not there"),
            ("import { a } from \"./main.js\";\n", "main.js imports itself"),
        ] {
            let later = "const b = () => import(\"./b.js\");\n";
            let files = sources(&[("main.js", text), ("b.js", ""), ("c.js", later)]);
            let error = Scripts::join(&files, "main.js").expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn styles_keep_their_order() {
        let files = sources(&[("a.css", "/* A. */\na {\n  top: 0;\n}\n"), ("b.css", "b {\n}\n")]);
        assert_eq!(join_styles(&files, ["b.css", "a.css"]).as_deref(), Ok("b {\n}\na {\ntop: 0;\n}\n"));
        assert!(join_styles(&files, ["c.css"]).is_err_and(|error| error.contains("c.css")));
    }

    #[test]
    fn comments_are_removed() {
        assert_eq!(
            without_comments("/* a\n b */\n  x(); // c\n\n// d\n /** e */ y();\n"),
            "x(); // c\ny();\n"
        );
    }
}
