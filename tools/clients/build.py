"""Makes a package for Python: a wheel that installs without a network. Asks for nothing but Python 3.11.

    build.py [python | participant/python] --out DIR

pip and `python3 -m build` come by the file backend.py of a package instead, and get the same wheel. An archive of the
sources has this file in it, and the types: whoever has the archive needs neither the repository nor a network.

For the client the types are made from the OpenAPI document first. What is made does not belong into the repository, so
it is made in DIR. Two builds of the same sources are the same bytes. Prints the path of the wheel.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent  # of the repository
OLDEST = (1980, 1, 1, 0, 0, 0)  # the first date that an archive can hold


def gather(source: Path, out: Path) -> Path:
    """Returns the folder of the module, with what is made."""
    (module,) = (each.parent for each in source.glob("*/__init__.py"))
    made = out / module.name
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(module, made, ignore=shutil.ignore_patterns("__pycache__"))
    if (source / "generate.py").exists():
        openapi = ROOT / "schema" / "openapi.json"
        subprocess.run([sys.executable, source / "generate.py", openapi, made], check=True)
    if (source.parent / "participant.sql").exists():
        shutil.copy(source.parent / "participant.sql", made)
    return made


def page_of(source: Path) -> str:
    near = [folder / "README.md" for folder in (source, source.parent)]
    return next(page for page in near if page.exists()).read_text(encoding="utf-8")


def license_of(source: Path) -> bytes:
    return next(file for file in (source / "LICENSE", ROOT / "LICENSE") if file.exists()).read_bytes()


def named(source: Path) -> tuple[str, bytes]:
    """Returns name and version as files have them, and what an installer is told."""
    project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    metadata = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License: {project['license']['text']}",
        f"Requires-Python: {project['requires-python']}",
        "Description-Content-Type: text/markdown",
    ]
    told = "\n".join([*metadata, "", page_of(source)]).encode()
    return f"{project['name'].replace('-', '_')}-{project['version']}", told


def write_wheel(source: Path, made: Path, out: Path) -> Path:
    name, metadata = named(source)
    info = f"{name}.dist-info"
    files = {f"{made.name}/{each.name}": each.read_bytes() for each in sorted(made.iterdir()) if each.is_file()}
    files[f"{info}/LICENSE"] = license_of(source)
    files[f"{info}/METADATA"] = metadata
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: sagad\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = [f"{path},sha256={digest_of(content)},{len(content)}" for path, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    wheel = out / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, OLDEST)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return wheel


def write_archive(source: Path, made: Path, out: Path) -> Path:
    """Of the sources, from which the same wheel is made elsewhere."""
    name, metadata = named(source)
    files = {f"{made.name}/{each.name}": each.read_bytes() for each in sorted(made.iterdir()) if each.is_file()}
    files |= {each: (source / each).read_bytes() for each in ("backend.py", "pyproject.toml")}
    files |= {"build.py": Path(__file__).read_bytes(), "README.md": page_of(source).encode()}
    files |= {"LICENSE": license_of(source), "PKG-INFO": metadata}
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    packed = out / f"{name}.tar.gz"
    packed.write_bytes(gzip.compress(raw.getvalue(), mtime=0))
    return packed


class Backend:
    """What PEP 517 asks for. What is made on the way lies elsewhere, so that the sources stay as they are."""

    def __init__(self, source: Path) -> None:
        self.source = source

    def build_wheel(self, out: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
        with tempfile.TemporaryDirectory() as made:
            return write_wheel(self.source, gather(self.source, Path(made)), Path(out)).name

    def build_sdist(self, out: str, config_settings: Any = None) -> str:
        with tempfile.TemporaryDirectory() as made:
            return write_archive(self.source, gather(self.source, Path(made)), Path(out)).name


def digest_of(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes a package for Python.")
    parser.add_argument("name", nargs="?", default="python", choices=["python", "participant/python"])
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    out: Path = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    source = HERE / options.name
    print(write_wheel(source, gather(source, out), out))


if __name__ == "__main__":
    main()
