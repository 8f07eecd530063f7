"""Count what a reader of the source meets: files, lines, functions, and private functions that are called once.

python benchmarks/code_size.py [DIRECTORY]           figures of src/paribus, or of another tree
python benchmarks/code_size.py --single [DIRECTORY]  private functions of three lines or fewer that are called once
"""

import argparse
import ast
import sys
from collections import Counter
from pathlib import Path
from statistics import median

SHORT = 3


def body_lines(function: ast.FunctionDef) -> int:
    """Lines of a function below its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0  # type: ignore[operator]


def names_in(tree: ast.AST) -> Counter[str]:
    """Uses of each name: read, taken as an attribute, or imported."""
    uses: Counter[str] = Counter()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                uses[name] += 1
    return uses


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, nargs="?", default=Path("src/paribus"))
    parser.add_argument("--single", action="store_true")
    given = parser.parse_args()
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(given.directory.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    functions = [
        (path, node) for path, tree in trees.items() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
    ]
    uses = {path: names_in(tree) for path, tree in trees.items()}  # a private name is used in its own file
    private = [(path, node) for path, node in functions if node.name.startswith("_") and not node.name.endswith("__")]
    once = [(path, node) for path, node in private if uses[path][node.name] == 1 and not node.decorator_list]
    short = [(path, node) for path, node in once if body_lines(node) <= SHORT]
    if given.single:
        for path, node in short:
            sys.stdout.write(f"{path}:{node.lineno}: {node.name} ({body_lines(node)})\n")
        return
    lines = [text.count("\n") for text in texts.values()]
    sys.stdout.write(
        f"files {len(texts)}, lines {sum(lines):,}, median file {median(lines):g}, longest {max(lines)}\n"
        f"functions {len(functions):,}, median body {median(body_lines(node) for _, node in functions):g} lines\n"
        f"private functions called once {len(once)}, of at most {SHORT} lines {len(short)}\n"
    )


if __name__ == "__main__":
    main()
