#!/usr/bin/env python3
"""Makes the bundle for MCP clients, OUTPUT.mcpb, and its entry for the MCP registry, server.json in the same folder.

    mcpb.py FOLDER VERSION OUTPUT.mcpb

FOLDER has the content of the archive of `make dist`. The bundle (https://github.com/modelcontextprotocol/mcpb) is a ZIP
file with the program, its licences and a manifest. The same folder gives the same bundle, byte for byte. The entry
(https://github.com/modelcontextprotocol/registry) has the bundle's SHA-256.
"""

import hashlib
import json
import sys
import zipfile
from pathlib import Path

REPOSITORY = "https://github.com/framewire/framewire"
ABOUT = "Plays and inspects Game Boy Advance and Game Boy games, frame by frame."


def manifest(version):
    game = {
        "type": "file",
        "title": "Game",
        "description": "The ROM that runs: a .gba, .gb or .gbc file.",
        "required": True,
    }
    command = {"command": "${__dirname}/server/framewire", "args": ["mcp", "${user_config.game}"], "env": {}}
    return {
        "manifest_version": "0.3",
        "name": "framewire",
        "display_name": "Framewire",
        "version": version,
        "description": ABOUT,
        "author": {"name": "The Framewire authors", "url": REPOSITORY},
        "repository": {"type": "git", "url": REPOSITORY},
        "documentation": f"{REPOSITORY}/blob/main/docs/agents.md",
        "license": "MIT OR Apache-2.0",
        "server": {"type": "binary", "entry_point": "server/framewire", "mcp_config": command},
        "tools_generated": True,
        "prompts_generated": True,
        "user_config": {"game": game},
        "compatibility": {"platforms": ["linux"]},
    }


def registry_entry(version, bundle):
    package = {
        "registryType": "mcpb",
        "identifier": f"{REPOSITORY}/releases/download/v{version}/{bundle.name}",
        "version": version,
        "fileSha256": hashlib.sha256(bundle.read_bytes()).hexdigest(),
        "transport": {"type": "stdio"},
    }
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": "io.github.framewire/framewire",
        "title": "Framewire",
        "description": ABOUT,
        "version": version,
        "repository": {"url": REPOSITORY, "source": "github"},
        "packages": [package],
    }


def text(document):
    return json.dumps(document, indent=2) + "\n"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    folder, version, bundle = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    licences = sorted([*folder.glob("LICENSE-*"), *folder.glob("licences/*")])
    files = [("manifest.json", text(manifest(version)).encode(), 0o644)]
    files += [(str(path.relative_to(folder)), path.read_bytes(), 0o644) for path in licences]
    files += [("server/framewire", (folder / "framewire").read_bytes(), 0o755)]
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, mode in files:
            # The ZIP entry must not depend on the time or the operating system of the build.
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, data)
    (bundle.parent / "server.json").write_text(text(registry_entry(version, bundle)))


main()
