//! Tests with clients that well-known generators make from the OpenAPI document. Each writes and reads memory, taps a
//! key and takes a picture. Also tests with the official SDKs of MCP.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use framewire_e2e::{Framewire, paths};
use tempfile::TempDir;

use super::served::Served;

/// A server, and a folder for a generated client.
struct Generation {
    framewire: Framewire,
    /// A folder inside that of `tools/clients.sh`, so that Node.js finds its modules.
    folder: TempDir,
}

impl Generation {
    fn new() -> Generation {
        Generation::of(Framewire::serve(&["--speed", "1"]).unwrap())
    }

    fn of(framewire: Framewire) -> Generation {
        let tools = tools();
        assert!(tools.join("installed").exists(), "the generators are not installed: `make setup-test`");
        let folder = TempDir::new_in(&tools).unwrap();
        let document = framewire.http().get("/openapi.json").unwrap().body;
        fs::write(folder.path().join("openapi.json"), document).unwrap();
        for file in fs::read_dir(paths::root().join("tests/clients")).unwrap().flatten() {
            fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
        fs::create_dir(folder.path().join("client")).unwrap();
        fs::write(folder.path().join("package.json"), r#"{"type": "module"}"#).unwrap();
        Generation { framewire, folder }
    }

    /// Runs a program in the folder. Looks for it first among the programs that `tools/clients.sh` has installed.
    /// Returns its output.
    #[track_caller]
    fn run(&self, program: &str, args: &[&str]) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        let own = [tools().join("venv/bin"), tools().join("node_modules/.bin")];
        let own: Vec<String> = own.iter().map(|folder| folder.display().to_string()).collect();
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.folder).env("PATH", format!("{}:{path}", own.join(":")));
        let output = command.output().unwrap_or_else(|error| panic!("{program}: {error}"));
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(output.status.success(), "{program} {args:?}: {said}");
        said
    }

    /// Runs programs in Python that use the client in the folder `client`.
    #[track_caller]
    fn use_python(&self, scripts: &[&str]) {
        for script in scripts {
            self.run("python", &["-W", "ignore", script, self.framewire.url()]);
        }
    }

    /// Type-checks TypeScript programs and their imports, and runs them.
    #[track_caller]
    fn use_typescript(&self, scripts: &[&str]) {
        let options: Vec<&str> = OPTIONS.split(' ').collect();
        self.run("tsc", &[&["--outDir", "."], &options[..], scripts].concat());
        for script in scripts {
            print!("{}", self.run("node", &[&script.replace(".ts", ".js"), self.framewire.url()]));
        }
    }

    /// Copies an example from docs/clients.md to a file, with the address of this server. `number` counts the examples
    /// in this language, from 0.
    fn write_example(&self, language: &str, number: usize, file: &str) {
        let page = fs::read_to_string(paths::root().join("docs/clients.md")).unwrap();
        let fence = format!("```{language}\n");
        let mut blocks = page.split(&fence).skip(1);
        let block = blocks.nth(number).and_then(|block| block.split("```").next()).unwrap();
        let block = block.replace("http://127.0.0.1:5000", self.framewire.url());
        fs::write(self.folder.path().join(file), block).unwrap();
    }
}

/// The settings of a strict TypeScript project of Node.js modules.
const OPTIONS: &str =
    "--strict --skipLibCheck --module nodenext --target es2022 --lib es2022,dom,dom.iterable";

fn tools() -> PathBuf {
    fs::canonicalize(paths::root()).unwrap().join("target/clients")
}

#[test]
fn openapi_python_client_makes_a_client_with_every_route() {
    let generation = Generation::new();
    generation.write_example("yaml", 0, "python-client.yml");
    generation.write_example("python", 0, "client/example.py");
    let args =
        ["generate", "--path", "openapi.json", "--config", "python-client.yml", "--output-path", "client"];
    let said = generation.run("openapi-python-client", &[&args[..], &["--overwrite"]].concat());
    assert!(!said.contains("will not be generated"), "{said}");
    generation.use_python(&["client/example.py", "openapi_python_client_use.py"]);
}

#[test]
fn openapi_typescript_makes_types_that_openapi_fetch_uses() {
    let generation = Generation::new();
    // Without the last option, fields with a default value would be required.
    let args = ["openapi.json", "--output", "schema.d.ts", "--default-non-nullable", "false"];
    generation.run("openapi-typescript", &args);
    generation.write_example("ts", 0, "example.ts");
    generation.use_typescript(&["example.ts", "openapi_fetch_use.ts"]);
}

#[test]
fn openapi_generator_makes_a_python_client() {
    let generation = Generation::new();
    generation
        .run("openapi-generator-cli", &["generate", "-g", "python", "-i", "openapi.json", "-o", "client"]);
    generation.write_example("python", 1, "client/example.py");
    generation.use_python(&["client/example.py", "openapi_generator_use.py"]);
}

#[test]
fn openapi_generator_makes_a_typescript_client() {
    let generation = Generation::new();
    let more = ["--additional-properties", "importFileExtension=.js"];
    let args = ["generate", "-g", "typescript-fetch", "-i", "openapi.json", "-o", "client"];
    generation.run("openapi-generator-cli", &[&args[..], &more].concat());
    generation.use_typescript(&["openapi_generator_use.ts"]);
}

#[test]
fn the_python_sdk_of_mcp_plays_over_stdio_and_http() {
    let generation = Generation::new();
    let program = Framewire::command(&[]).unwrap().get_program().to_string_lossy().into_owned();
    let root = fs::canonicalize(paths::root()).unwrap();
    let args = ["-W", "ignore", "mcp_use.py", generation.framewire.url(), &program, root.to_str().unwrap()];
    generation.run("python", &args);
}

/// Plays random sequences with MCP, over HTTP and over stdio, while connections are cut.
#[track_caller]
fn check_mcp_frames(server: Framewire) {
    let generation = Generation::of(server);
    let program = Framewire::command(&[]).unwrap().get_program().to_string_lossy().into_owned();
    println!("{}", generation.run("python", &["mcp_frames.py", generation.framewire.url(), &program]));
}

#[test]
fn mcp_presses_keys_once_and_in_exactly_the_right_frames_of_an_embedded_core() {
    check_mcp_frames(Framewire::serve(&["--speed", "8"]).unwrap());
}

#[test]
fn mcp_presses_keys_once_and_in_exactly_the_right_frames_of_a_window() {
    let served = Served::unlimited_stock();
    // mGBA and its folder must exist as long as the server.
    let Served { server, mgba: _mgba, folder: _folder, .. } = served;
    check_mcp_frames(server);
}

#[test]
fn the_typescript_sdk_of_mcp_plays_over_http() {
    let generation = Generation::new();
    generation.use_typescript(&["mcp_use.ts"]);
}
