"""The edges of a dataflow whose ends do not declare the same table."""

from __future__ import annotations

from typing import get_type_hints

from scoped_retrieval.pipeline.line.planned_driver import PlannedDriver, declared_table


def disagreements(driver: PlannedDriver) -> list[str]:
    """`node.input: expected A, got B`."""
    types, wrong = {node.name: node.type for node in driver.list_available_variables()}, []
    for node in driver.made():
        for function in node.originating_functions or ():
            for name, annotation in get_type_hints(function, include_extras=True).items():
                wanted, given = (declared_table(kind) for kind in (annotation, types.get(name)))
                if name != "return" and (wanted and wanted.name) != (given and given.name):
                    wrong.append(f"{node.name}.{name}: expected {wanted and wanted.name}, got {given and given.name}")
    return wrong
