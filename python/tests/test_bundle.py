"""The bundle for MCP clients, and its entry for the MCP registry. tools/mcpb.py makes both."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from tests.servers import ROOT

VERSION = "1.2.3"


def closed(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """The schema of an object with these fields and no others."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


TEXT = {"type": "string", "minLength": 1}
URL = {"type": "string", "pattern": "^https://[^ ]+$"}
EXACT_VERSION = {"type": "string", "pattern": r"^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$"}

# The part of the registry's schema of 2025-12-11 that the entry uses, with the registry's rules for bundles: the
# address is a release on GitHub and contains "mcp", and there is a SHA-256.
ENTRY = closed(
    {
        "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"},
        "name": {"type": "string", "pattern": r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", "minLength": 3, "maxLength": 200},
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "version": {**EXACT_VERSION, "maxLength": 255},
        "repository": closed({"url": URL, "source": {"const": "github"}}),
        "packages": {
            "type": "array",
            "minItems": 1,
            "items": closed(
                {
                    "registryType": {"const": "mcpb"},
                    "identifier": {"type": "string", "pattern": r"^https://github\.com/.+/releases/download/.*mcp"},
                    "version": EXACT_VERSION,
                    "fileSha256": {"type": "string", "pattern": "^[a-f0-9]{64}$"},
                    "transport": closed({"type": {"const": "stdio"}}),
                }
            ),
        },
    }
)

# The part of the schema of bundles, version 0.3, that the manifest uses.
OPTION = closed(
    {
        "type": {"enum": ["string", "number", "boolean", "directory", "file"]},
        "title": TEXT,
        "description": TEXT,
        "required": {"type": "boolean"},
    },
    optional=("required",),
)
MANIFEST = closed(
    {
        "manifest_version": {"const": "0.3"},
        "name": TEXT,
        "display_name": TEXT,
        "version": EXACT_VERSION,
        "description": TEXT,
        "author": closed({"name": TEXT, "url": URL}),
        "repository": closed({"type": TEXT, "url": URL}),
        "documentation": URL,
        "license": TEXT,
        "server": closed(
            {
                "type": {"enum": ["python", "node", "binary"]},
                "entry_point": TEXT,
                "mcp_config": closed(
                    {"command": TEXT, "args": {"type": "array", "items": TEXT}, "env": {"type": "object"}}
                ),
            }
        ),
        "tools_generated": {"type": "boolean"},
        "prompts_generated": {"type": "boolean"},
        "user_config": {"type": "object", "additionalProperties": OPTION},
        "compatibility": closed({"platforms": {"type": "array", "items": {"enum": ["darwin", "win32", "linux"]}}}),
    }
)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle, made from a folder whose files have the same names as those in the archive of `make dist`."""
    folder = tmp_path / "archive"
    (folder / "licences").mkdir(parents=True)
    (folder / "framewire").write_bytes(b"\x7fELF program")
    for name in ["LICENSE-MIT", "LICENSE-APACHE", "licences/library.txt"]:
        (folder / name).write_text(name)
    made = tmp_path / f"framewire-{VERSION}-x86_64-linux.mcpb"
    subprocess.run([sys.executable, ROOT / "tools" / "mcpb.py", folder, VERSION, made], check=True)
    return made


def test_the_manifest_is_valid_and_names_files_of_the_bundle(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        names = archive.namelist()
        manifest = json.loads(archive.read("manifest.json"))
        assert archive.read("server/framewire") == b"\x7fELF program"
        assert archive.getinfo("server/framewire").external_attr >> 16 & 0o111
    jsonschema.validate(manifest, MANIFEST)
    server, options = manifest["server"], manifest["user_config"]
    assert manifest["version"] == VERSION
    assert server["entry_point"] in names
    assert server["mcp_config"]["command"] == "${__dirname}/" + server["entry_point"]
    used = re.findall(r"\$\{user_config\.(\w+)\}", json.dumps(server))
    assert sorted(used) == sorted(options)
    assert {"LICENSE-MIT", "LICENSE-APACHE", "licences/library.txt"} <= set(names)


def test_the_registry_entry_is_valid_and_has_the_hash_of_the_bundle(bundle: Path) -> None:
    entry = json.loads((bundle.parent / "server.json").read_text())
    jsonschema.validate(entry, ENTRY)
    (package,) = entry["packages"]
    assert entry["version"] == package["version"] == VERSION
    assert package["fileSha256"] == hashlib.sha256(bundle.read_bytes()).hexdigest()
    assert package["identifier"].endswith(f"/v{VERSION}/{bundle.name}")
    assert package["identifier"].startswith(entry["repository"]["url"])
    # The owner in the name must be the owner of the repository.
    owner = entry["repository"]["url"].split("/")[3]
    assert entry["name"].startswith(f"io.github.{owner}/")


@pytest.mark.parametrize(
    "change",
    [{"description": "x" * 101}, {"version": "^1.2.3"}, {"name": "framewire"}, {"status": "active"}, {"packages": []}],
)
def test_the_schema_refuses_entries_that_the_registry_refuses(bundle: Path, change: dict[str, Any]) -> None:
    entry = json.loads((bundle.parent / "server.json").read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**entry, **change}, ENTRY)
