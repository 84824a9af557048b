//! Tests of arguments that name files. Front ends restrict the files, and find these arguments by their name, `path`.

use framewire_protocol::Op;
use framewire_protocol::op::{ArgKind, OPS};

fn paths(op: &mut Op) -> Vec<String> {
    let mut found = Vec::new();
    let visited: Result<(), ()> = op.try_for_each_path(|path| {
        found.push(std::mem::replace(path, "elsewhere".to_owned()));
        Ok(())
    });
    assert_eq!(visited, Ok(()));
    found
}

#[test]
fn arguments_that_name_files_are_called_path() {
    for row in OPS {
        let has_path = row.args.iter().any(|arg| arg.name == "path" && arg.kind == ArgKind::Text);
        let mentions_file = row.doc.contains(" file on the emulator's machine")
            || row.args.iter().any(|arg| arg.doc.to_lowercase().contains("the file."));
        assert_eq!(has_path, mentions_file, "{}", row.name);
    }
    assert_eq!(OPS.iter().filter(|row| row.args.iter().any(|arg| arg.name == "path")).count(), 7);
}

#[test]
fn paths_are_visited_and_other_texts_are_not() {
    let mut load = Op::LoadSaveFile { path: "a.sav".to_owned(), temporary: true };
    assert_eq!(paths(&mut load), ["a.sav"]);
    assert_eq!(load, Op::LoadSaveFile { path: "elsewhere".to_owned(), temporary: true });
    for mut op in [Op::ConsoleLog { message: "/etc/passwd".to_owned() }, Op::Reset {}] {
        assert!(paths(&mut op).is_empty());
    }
    let refused = Op::LoadRom { path: "x".to_owned() }.try_for_each_path(|_| Err("no"));
    assert_eq!(refused, Err("no"));
}
