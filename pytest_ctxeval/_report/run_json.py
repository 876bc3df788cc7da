"""A run as JSON: every case with all that is known of it, and what was made of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from pytest_ctxeval._core.gate import GateCheck
from pytest_ctxeval._core.summary import Summary

SCHEMA: Final = 1


def run_json(summary: Summary, checks: Sequence[GateCheck], *, record: str, stat: str) -> str:
    """Give the text of a stored run. It holds no time, no path of a machine and no order of arrival."""
    run = {
        "schema": SCHEMA,
        "record": record,
        "stat": stat,
        "sessions": [asdict(row) for row in summary.sessions],
        "gates": [
            {
                "gate": check.gate.text,
                "session_id": check.session.session_id if check.session else None,
                "status": check.status,
                "text": check.text,
            }
            for check in checks
        ],
        "cases": [asdict(result) for result in summary.results],
    }
    return json.dumps(run, indent=2) + "\n"
