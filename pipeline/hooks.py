"""What watches the line while it runs: every output must be the table that its node declares."""

from __future__ import annotations

from typing import Any, get_args

from hamilton.lifecycle import NodeExecutionHook

from ..nodes.schema import Table


def declared_table(annotation: Any) -> Table | None:
    """The table that an annotation names, if it names one."""
    return next((item for item in get_args(annotation) if isinstance(item, Table)), None)


class TableCheck(NodeExecutionHook):
    """Checks each output against its declaration; a node that raises leaves its name on the exception.

    It holds no state, so that threads may share a driver.
    """

    def run_before_node_execution(self, **_: Any) -> None:
        """Nothing to do."""

    def run_after_node_execution(
        self, *, node_name: str, node_return_type: Any, result: Any, error: Exception | None, success: bool, **_: Any
    ) -> None:
        """Check the output, or remember which node failed."""
        if error is not None:
            error.add_note(f"{NODE_NOTE}{node_name}")
        table = declared_table(node_return_type)
        if success and table is not None:
            try:
                table.check(result)
            except Exception as wrong:
                wrong.add_note(f"{NODE_NOTE}{node_name}")
                raise


NODE_NOTE = "node: "


def failed_node(error: BaseException) -> str | None:
    """The node that raised an error, if the error came from a node."""
    notes = getattr(error, "__notes__", ())
    return next((note.removeprefix(NODE_NOTE) for note in notes if note.startswith(NODE_NOTE)), None)
