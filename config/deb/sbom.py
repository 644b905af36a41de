"""Makes the list of what is in the package out of that of the lock: `sbom.py MODULES < SBOM`, CycloneDX.

The same lock gives the same bytes: its date is SOURCE_DATE_EPOCH, its number comes from its content.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from merge import distribution


def of_package(sbom: dict[str, Any], there: set[str], epoch_s: int) -> dict[str, Any]:
    """Return the list with only those components that are there."""
    components = [one for one in sbom["components"] if one["name"] in there]
    references = {one["bom-ref"] for one in components} | {sbom["metadata"]["component"]["bom-ref"]}
    depending = [
        {**one, "dependsOn": [ref for ref in one.get("dependsOn", []) if ref in references]}
        for one in sbom["dependencies"]
        if one["ref"] in references
    ]
    told = {**sbom, "components": components, "dependencies": depending}
    told["metadata"] = {**sbom["metadata"], "timestamp": datetime.fromtimestamp(epoch_s, UTC).isoformat()}
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps({**told, "serialNumber": ""}, sort_keys=True))
    return {**told, "serialNumber": number.urn}


if __name__ == "__main__":
    modules = {distribution(info) for info in Path(sys.argv[1]).glob("*.dist-info")}
    own = of_package(json.load(sys.stdin), modules, int(os.environ["SOURCE_DATE_EPOCH"]))
    json.dump(own, sys.stdout, indent=2)
    sys.stdout.write("\n")
