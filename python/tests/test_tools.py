"""The scripts in `tools/` that build and test the program."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.servers import ROOT


def test_setup_without_root_and_without_sudo_says_what_to_run(tmp_path: Path) -> None:
    for name in ("awk", "df"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    # No package is installed, and the user is not root.
    for name, script in (("cargo", "exit 0"), ("dpkg-query", "exit 1"), ("apt-get", "exit 0"), ("id", "echo 1000")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    command = ["/bin/sh", str(ROOT / "tools/setup.sh"), "run", "echo", "built"]
    run = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (1, "")
    assert "there is no sudo; run this command as root, then try again:\napt-get install -y " in run.stderr
    assert " cmake " in run.stderr
