"""The tree-sitter grammars in use, with the queries for definitions, constants and references.

Gives: `grammar(splitter) -> Grammar` and `Grammar.tree(data)`. `_GRAMMARS` is the one list of them. Every grammar comes in the wheel of its language; nothing is
fetched.

Note: repairing text that is not of the language takes time that grows with the square of
its length, in the parser and in queries over the broken part. The limits here count steps, not seconds, so that the same
text gives the same chunks on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

__all__ = ["SPLITTERS", "WHEELS", "Grammar", "grammar"]

_FREE_STEPS = 400
_BYTES_A_STEP = 40
_READ_BYTES = 1 << 16
"""The parser reports about every 240 bytes of ordinary code; a tenth of that is far from code."""
_RUBBLE = 2_000
"""A broken part of more nodes than this is not code of the language."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A parser and its queries. Definition patterns capture `@class`, `@function` or `@test`, and `@name`."""

    parser: Parser
    definitions: Query
    references: Query

    def tree(self, data: bytes) -> Node | None:
        """The root of the syntax tree; None where the text is too far from the language to be worth the time."""
        left = _FREE_STEPS + len(data) // _BYTES_A_STEP

        def stop(_offset: int, _broken: bool) -> bool:
            nonlocal left
            left -= 1
            return left < 0

        try:
            root = self.parser.parse(lambda at, _point: data[at : at + _READ_BYTES], progress_callback=stop).root_node
        except ValueError:  # stopped
            self.parser.reset()
            return None
        return None if _is_rubble(root) else root


_PYTHON_DEFINITIONS = """
(class_definition name: (identifier) @name) @class
(function_definition name: (identifier) @name) @function
(module (expression_statement (assignment left: (identifier) @name) @constant))
(class_definition body: (block (expression_statement (assignment left: (identifier) @name) @constant)))
"""
_PYTHON_REFERENCES = """
(call function: (identifier) @name)
(call function: (attribute attribute: (identifier) @name))
(decorator (identifier) @name)
(decorator (attribute attribute: (identifier) @name))
(class_definition superclasses: (argument_list (identifier) @name))
(class_definition superclasses: (argument_list (attribute attribute: (identifier) @name)))
(import_from_statement name: (dotted_name (identifier) @name))
(import_from_statement name: (aliased_import name: (dotted_name (identifier) @name)))
(type (identifier) @name)
(argument_list (identifier) @name)
(except_clause (identifier) @name)
(raise_statement (identifier) @name)
"""
_JS_DEFINITIONS = """
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(class_declaration name: (_) @name) @class
(method_definition name: (_) @name) @function
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(assignment_expression left: (member_expression property: (property_identifier) @name)
    right: [(arrow_function) (function_expression)]) @function
(program (lexical_declaration (variable_declarator name: (identifier) @name) @constant))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @constant)))
(call_expression function: [(identifier) (member_expression object: (identifier))] @tester
    arguments: (arguments . (string) @name . [(arrow_function) (function_expression)])) @test
"""
_JS_ONLY = "(field_definition property: (property_identifier) @name value: (arrow_function)) @function\n"
_TS_ONLY = """
(public_field_definition name: (property_identifier) @name value: (arrow_function)) @function
(abstract_class_declaration name: (type_identifier) @name) @class
(interface_declaration name: (type_identifier) @name) @class
(type_alias_declaration name: (type_identifier) @name) @class
(enum_declaration name: (identifier) @name) @class
(internal_module name: (_) @name) @class
(function_signature name: (identifier) @name) @function
"""
_JS_REFERENCES = """
(call_expression function: (identifier) @name)
(call_expression function: (member_expression property: (property_identifier) @name))
(new_expression constructor: (identifier) @name)
(new_expression constructor: (member_expression property: (property_identifier) @name))
(import_specifier name: (identifier) @name)
(import_clause (identifier) @name)
(class_heritage (identifier) @name)
(arguments (identifier) @name)
"""
_TS_REFERENCES = """
(extends_clause value: (identifier) @name)
(type_annotation (type_identifier) @name)
(type_arguments (type_identifier) @name)
(generic_type name: (type_identifier) @name)
(union_type (type_identifier) @name)
(extends_type_clause (type_identifier) @name)
(implements_clause (type_identifier) @name)
"""
_JSX_REFERENCES = """
(jsx_opening_element name: (identifier) @name)
(jsx_self_closing_element name: (identifier) @name)
"""
_TS_FULL_REFERENCES = _JS_REFERENCES.replace("(class_heritage (identifier) @name)\n", "") + _TS_REFERENCES

_GRAMMARS = {
    "python": ("tree_sitter_python", "language", _PYTHON_DEFINITIONS, _PYTHON_REFERENCES),
    "javascript": (
        "tree_sitter_javascript",
        "language",
        _JS_DEFINITIONS + _JS_ONLY,
        _JS_REFERENCES + _JSX_REFERENCES,
    ),
    "typescript": ("tree_sitter_typescript", "language_typescript", _JS_DEFINITIONS + _TS_ONLY, _TS_FULL_REFERENCES),
    "tsx": (
        "tree_sitter_typescript",
        "language_tsx",
        _JS_DEFINITIONS + _TS_ONLY,
        _TS_FULL_REFERENCES + _JSX_REFERENCES,
    ),
}
SPLITTERS = frozenset(_GRAMMARS)
"""The languages that are cut by a grammar."""
WHEELS = tuple(sorted({module.replace("_", "-") for module, *_ in _GRAMMARS.values()}))
"""The distributions that grammars come in."""


@cache
def grammar(splitter: str) -> Grammar:
    """The grammar of a splitter, one of `SPLITTERS`."""
    from tree_sitter import Language, Parser, Query  # only where a file is cut: an `ask` loads no parser

    module, function, definitions, references = _GRAMMARS[splitter]
    language = Language(getattr(import_module(module), function)())
    return Grammar(Parser(language), Query(language, definitions), Query(language, references))


def _is_rubble(root: Node) -> bool:
    open_ = [root]
    while open_:
        node = open_.pop()
        if node.has_error:
            if node.is_error and node.child_count > _RUBBLE:
                return True
            open_.extend(node.children)
    return False
