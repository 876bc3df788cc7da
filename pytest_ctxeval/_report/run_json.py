"""A run as JSON: every case with all that is known of it, and what was made of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from pytest_ctxeval._core.gate import GateCheck
from pytest_ctxeval._core.summary import Summary
from pytest_ctxeval._core.verdict import CaseResult, spread_of

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
        "cases": [_case(result) for result in summary.results],
    }
    return json.dumps(run, indent=2) + "\n"


def _case(result: CaseResult) -> dict[str, Any]:
    spread = spread_of(result.samples)
    return {**asdict(result), "spread": [spread.low, spread.high] if spread else None}
