"""Collect what a guest needs to run, and nothing else: this interpreter, the modules it loads, the libraries of both.

The program of a build, run by the interpreter that is to be collected: the host's, or that of a base image. It
imports the guest as a sandbox would and copies what that loaded: once its locks are closed a guest cannot open any
further file, so whatever it has not loaded by then it can do without. No shell, no other program and no file with
special bits comes along, because none is ever copied.

    python3 -s -P -S -B collect.py <folder of the guest's packages> <destination>
"""

import os
import sys
from collections.abc import Iterator
from importlib.util import MAGIC_NUMBER
from marshal import dumps
from types import CodeType, ModuleType

LIBRARIES = "usr/lib/guest"
GUEST = "opt/guest"

_WITHOUT_REFERENCES = 2  # the version of the format whose bytes depend on the code alone
_NEVER_CHECKED = b"\x01\x00\x00\x00" + bytes(8)  # compiled code that belongs to no source file
_LANDMARK = "os"  # part of the interpreter itself, which looks for its file all the same to find the library
_ELF_INTERPRETER = 3


def main(packages: str, destination: str) -> None:
    """Write the root file system of an image to ``destination``."""
    sys.path.append(packages)
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # the import system's own way to say "absent"
    import tallystick.sandbox.guest.process  # noqa: F401, PLC0415 - to see what it loads

    for path, data, mode in _files():
        target = _place(destination, path)
        with open(target, "wb") as file:
            file.write(data)
        os.chmod(target, mode)
    for path, name in _aliases():
        os.symlink(name, _place(destination, path))
    for folder in (f"usr/{sys.platlibdir}/{_version()}/lib-dynload", "proc", "sys", "dev"):
        os.makedirs(os.path.join(destination, folder), exist_ok=True)


def _place(destination: str, path: str) -> str:
    target = os.path.join(destination, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    return target


def _files() -> Iterator[tuple[str, bytes, int]]:
    """Yield each file's path below the root, its bytes and its mode."""
    for name, module in sorted(sys.modules.items()):
        origin = _origin(module)
        if name == "__main__" or origin in {"", "built-in"} or (origin == "frozen" and name != _LANDMARK):
            continue
        if origin.endswith(".so"):
            yield _extension_path(name, origin), _read(origin), 0o755
        else:
            yield _module_path(name, module), _compiled(name, module), 0o644
    executable = os.path.realpath(sys.executable)
    yield "usr/bin/python3", _read(executable), 0o755
    for library in _libraries():
        yield f"{LIBRARIES}/{os.path.basename(library)}", _read(library), 0o755
    loader = _loader(executable)
    if loader:
        yield loader.lstrip("/"), _read(loader), 0o755


def _aliases() -> Iterator[tuple[str, str]]:
    """Yield the further names of each library: programs ask for it by one, the kernel knows it by another."""
    for library in _libraries():
        with os.scandir(os.path.dirname(library)) as entries:
            for entry in entries:
                if entry.is_symlink() and os.path.realpath(entry.path) == library:
                    yield f"{LIBRARIES}/{entry.name}", os.path.basename(library)


def _modules() -> list[ModuleType]:
    return list(sys.modules.values())


def _origin(module: ModuleType) -> str:
    return getattr(getattr(module, "__spec__", None), "origin", None) or ""


def _version() -> str:
    return f"python{sys.version_info[0]}.{sys.version_info[1]}"


def _root(name: str) -> str:
    if name.partition(".")[0] in sys.stdlib_module_names:
        return f"usr/{sys.platlibdir}/{_version()}"
    return GUEST


def _module_path(name: str, module: ModuleType) -> str:
    package = "/__init__" if hasattr(module, "__path__") else ""
    return f"{_root(name)}/{name.replace('.', '/')}{package}.pyc"


def _extension_path(name: str, origin: str) -> str:
    parent = name.rpartition(".")[0].replace(".", "/")
    root = _root(name)
    folder = f"{root}/{parent}" if parent else f"{root}/lib-dynload"
    return f"{folder}/{os.path.basename(origin)}"


def _compiled(name: str, module: ModuleType) -> bytes:
    loader = module.__spec__.loader if module.__spec__ else None
    code = loader.get_code(name)  # type: ignore[union-attr]  # all these loaders have it
    return MAGIC_NUMBER + _NEVER_CHECKED + dumps(_unplaced(code, _module_path(name, module)), _WITHOUT_REFERENCES)


def _unplaced(code: CodeType, path: str) -> CodeType:
    """Return the code without the place that it was collected from: that is nobody's business, and it changes."""
    constants = tuple(_unplaced(part, path) if isinstance(part, CodeType) else part for part in code.co_consts)
    return code.replace(co_filename=f"/{path}", co_consts=constants)


def _libraries() -> list[str]:
    """Return the shared libraries in this process, without its own extension modules and without its loader."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        mapped = {line.split(maxsplit=5)[-1].strip() for line in maps if "/" in line}
    executable = os.path.realpath(sys.executable)
    others = {executable, os.path.realpath(_loader(executable)), *(os.path.realpath(_origin(m)) for m in _modules())}
    return sorted(path for path in mapped - others if ".so" in os.path.basename(path))


def _loader(executable: str) -> str:
    """Return the path at which the kernel looks for the loader of an executable, "" for a static one."""
    data = _read(executable)
    start, size, count = (int.from_bytes(data[at : at + width], "little") for at, width in ((32, 8), (54, 2), (56, 2)))
    for at in range(start, start + size * count, size):
        if int.from_bytes(data[at : at + 4], "little") == _ELF_INTERPRETER:
            offset, length = (int.from_bytes(data[at + field : at + field + 8], "little") for field in (8, 32))
            return data[offset : offset + length].rstrip(b"\0").decode()
    return ""


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
