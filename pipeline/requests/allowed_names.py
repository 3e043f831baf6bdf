"""The installed names that a request may use: modes, roles with an overlay, tokenizers, score terms of plugins.

Reads: columns of a request, all of them or those that a what-if changes. Gives: `AllowedNames`, whose `expect` refuses
unknown names. Requests on arrival and the changes of a what-if go through it, so both are refused alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...nodes.errors import InputError, ModelError
from ...nodes.scope.mode_choices import chosen
from ..config.policies.weight_files import expect_weighed
from ..line.tokenizers import resolved_name


@dataclass(frozen=True)
class AllowedNames:
    """Rows of MODE_POLICIES by mode (empty allows any), roles (None allows any), registered tokenizer files, and the
    score terms of active plugins.
    """

    modes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    roles: Collection[str] | None = None
    tokenizers: Collection[str] = ()
    score_terms: Collection[str] = ()

    def expect(self, columns: Mapping[str, Any], place_of: Callable[[str], str], at: str) -> dict[str, Any]:
        """The columns, with a tokenizer file replaced by its pinned name.

        Args:
            place_of: returns the place of a column.
            at: the place of the columns.

        Raises:
            InputError: a mode, role, tokenizer or score term is unknown here, or the mode needs a variable.
        """
        found = dict(columns)
        for term in found.get("weights") or ():
            expect_weighed(term, self.score_terms, f"{place_of('weights')}.{term}")
        if self.roles is not None and found.get("role") not in (None, *self.roles):
            hint = "roles are the overlays in the policy folder; `policies list` shows them"
            raise InputError.one_of(self.roles, found["role"], place_of("role"), hint=hint)
        if "tokenizer" in found:
            try:
                found["tokenizer"] = resolved_name(found["tokenizer"], self.tokenizers, place_of("tokenizer"))
            except ModelError as error:
                raise InputError(error.message, hint=error.hint) from error
        if found.get("mode") and self.modes:
            chosen(found["mode"], found.get("variables"), self.modes, at)
        return found
