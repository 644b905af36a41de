"""A contract for import-linter: from outside themselves, some modules import only what is listed."""

from __future__ import annotations

from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class AllowedImports(Contract):
    """An allow-list. A list of what is forbidden knows only what somebody thought of.

    Options: `source_modules` (packages or modules), `allowed_modules` (packages or modules, of the standard
    library too), and `exceptions`, each ``importer -> imported``; one that nobody needs is refused.
    """

    type_name = "allowed"

    # import-linter puts the lists that were read in the place of the fields.
    source_modules: Any = fields.ListField(subfield=fields.StringField())
    allowed_modules: Any = fields.ListField(subfield=fields.StringField())
    exceptions: Any = fields.ListField(subfield=fields.StringField(), required=False, default=[])

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002 - as it is called
        """Compare every import of the sources with the list."""
        sources, allowed = tuple(self.source_modules), (*self.source_modules, *self.allowed_modules)
        strange = {
            f"{importer} -> {imported}"
            for importer in graph.modules
            if _within(importer, sources)
            for imported in graph.find_modules_directly_imported_by(importer)
            if not _within(imported, allowed)
        }
        excepted = set(self.exceptions)
        found = sorted(strange - excepted) + sorted(f"{it}: no such import" for it in excepted - strange)
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name every import that is not on the list."""
        for line in check.metadata["found"]:
            output.print_error(line)


def _within(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)
