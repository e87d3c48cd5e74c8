"""The Python source inside of wheels, read without installing or importing anything."""

import ast
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import Any, Final

from packaging.utils import parse_wheel_filename
from packaging.version import Version

PYTHON: Final = f"cp{sys.version_info.major}{sys.version_info.minor}-"
"""The tag of this Python in a wheel's name."""


class Wheel:
    """One wheel: its version and the modules in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.version: Version = parse_wheel_filename(path.name)[1]
        self._zip = zipfile.ZipFile(path)
        self.names = frozenset(self._zip.namelist())

    def text(self, name: str) -> str:
        """A file in the wheel, or the module of a dotted name."""
        if name not in self.names:
            plain = name.replace(".", "/")
            name = f"{plain}.py" if f"{plain}.py" in self.names else f"{plain}/__init__.py"
        return self._zip.read(name).decode()

    @cache  # noqa: B019 - as long as the tests run
    def tree(self, module: str) -> ast.Module:
        """The syntax tree of a module."""
        return ast.parse(self.text(module))

    def find(self, module: str, name: str) -> ast.AST:
        """A class, function or method: ``Class.method``.

        Raises
        ------
        LookupError
            If the module has none of that name.
        """
        found: ast.AST = self.tree(module)
        for part in name.split("."):
            inside = [
                one
                for one in ast.walk(found)
                if isinstance(one, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and one.name == part
            ]
            if not inside:
                raise LookupError(f"{self.path.name}: {module} has no {name}")
            found = inside[-1] if isinstance(found, ast.Module) else inside[0]
        return found

    def parameters(self, module: str, name: str) -> list[str]:
        """Names of a function's parameters, in order."""
        found = self.find(module, name)
        assert isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef))
        arguments = found.args
        names = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        return names + [one.arg for one in (arguments.vararg, arguments.kwarg) if one is not None]

    def bases(self, module: str, name: str) -> list[str]:
        """The bases of a class, as they are written."""
        found = self.find(module, name)
        assert isinstance(found, ast.ClassDef)
        return [ast.unparse(base) for base in found.bases]

    def run(self, module: str, *names: str, **around: Any) -> dict[str, Any]:
        """Run the definitions of classes and functions, not the module: what they are, by name.

        ``around`` is what they find in the place of the module's imports; annotations are not looked at.
        """
        future = ast.ImportFrom("__future__", [ast.alias("annotations")], 0)
        body: list[ast.stmt] = [future]
        for name in names:
            found = self.find(module, name)
            assert isinstance(found, ast.stmt)
            body.append(found)
        space = dict(around, __name__=f"{module} out of a wheel")
        exec(compile(ast.fix_missing_locations(ast.Module(body, [])), self.path.name, "exec"), space)
        return {name: space[name.rpartition(".")[2]] for name in names}

    def source(self, module: str, name: str) -> str:
        """The source of a class or function in one normal form, without comments."""
        return ast.unparse(self.find(module, name))

    def calls(self, module: str, name: str) -> list[str]:
        """What a function calls, in the order of the text: ``self.engine.initialize``."""
        found = [one for one in ast.walk(self.find(module, name)) if isinstance(one, ast.Call)]
        found.sort(key=lambda call: (call.lineno, call.col_offset))
        return [ast.unparse(call.func) for call in found]

    def arguments_of(self, module: str, name: str, called: str) -> list[str]:
        """The arguments with which a function calls another one, at the first place."""
        for call in ast.walk(self.find(module, name)):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == called:
                return [ast.unparse(one) for one in call.args] + [f"{one.arg}=" for one in call.keywords]
        raise LookupError(f"{self.path.name}: {module}: {name} does not call {called}")


def newest(folder: Path, distribution: str) -> Wheel | None:
    """The newest wheel of a distribution in a folder, best for this Python; None if there is none."""
    name = distribution.replace("-", "_")
    found = [Wheel(path) for path in folder.glob(f"{name}-*.whl")]
    return max(found, key=lambda wheel: (wheel.version, PYTHON in wheel.path.name), default=None)
