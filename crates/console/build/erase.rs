//! TypeScript to JavaScript.

use std::path::Path;

use oxc_allocator::Allocator;
use oxc_codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc_parser::Parser;
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use oxc_transformer::{RewriteExtensionsMode, TransformOptions, Transformer, TypeScriptOptions};

/// The module `name` without its types and comments; its imports name `.js` where the source names `.ts`.
///
/// # Errors
/// What is wrong with the syntax, one line each. Types are not checked here: `tsc` does that with the tests.
pub fn types(name: &str, source: &str) -> Result<String, String> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, SourceType::ts()).parse();
    refuse(&parsed.errors)?;
    let mut program = parsed.program;
    let analysed = SemanticBuilder::new().build(&program);
    refuse(&analysed.errors)?;
    let options = TransformOptions {
        typescript: TypeScriptOptions {
            only_remove_type_imports: true,
            rewrite_import_extensions: Some(RewriteExtensionsMode::Rewrite),
            ..TypeScriptOptions::default()
        },
        ..TransformOptions::default()
    };
    let transformed = Transformer::new(&allocator, Path::new(name), &options)
        .build_with_scoping(analysed.semantic.into_scoping(), &mut program);
    refuse(&transformed.errors)?;
    let options = CodegenOptions { comments: CommentOptions::disabled(), ..CodegenOptions::default() };
    Ok(Codegen::new().with_options(options).build(&program).code)
}

fn refuse<E: std::fmt::Display>(errors: &[E]) -> Result<(), String> {
    match errors {
        [] => Ok(()),
        errors => Err(errors.iter().map(E::to_string).collect::<Vec<_>>().join("\n")),
    }
}
