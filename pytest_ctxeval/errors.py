"""Every exception and warning of the package, by who has to act.

::

    AssertionError
      ScoreTooLow              the assistant answered badly; nothing is broken
    CtxEvalError(Exception)    something is broken; never turned into a score
      ConfigError              an option, a marker, a dataset, a case
      JudgeError               the judge failed on this case
        JudgeUnreachableError  no answer: network, status, timeout
        JudgeReplyError        an answer that cannot be read; keeps the raw reply
      CassetteError            a recording cannot be used or made
        CassetteMissError      this request was never recorded
        CassetteReadError      the file is damaged
    CtxEvalWarning(UserWarning)
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_ctxeval._core.verdict import Verdict


class CtxEvalError(Exception):
    """Something is broken. It is told as it is and never becomes a score."""


class ConfigError(CtxEvalError):
    """An option, a marker, a dataset or a case is wrong; the message names the place and the cure."""


class JudgeError(CtxEvalError):
    """The judge failed on this case: the case is unscored."""


class JudgeUnreachableError(JudgeError):
    """No answer came from the judge: the network, a status, a time-out.

    `refused` is true where the key itself was refused (401 or 403), which ends judging for the whole run; `transient`
    where another try may end otherwise: the judge was not reached, took too long, had too much to do (408, 429) or
    failed (5xx).
    """

    def __init__(self, message: str, *, refused: bool = False, transient: bool = False) -> None:
        super().__init__(message)
        self.refused = refused
        self.transient = transient


class JudgeReplyError(JudgeError):
    """An answer came that cannot be read as a verdict. `raw` is the reply as the model wrote it."""

    def __init__(self, message: str, *, raw: str = "") -> None:
        super().__init__(message)
        self.raw = raw


class CassetteError(CtxEvalError):
    """A recording cannot be used or cannot be made."""


class CassetteMissError(CassetteError):
    """This request was never recorded, and the record mode does not allow to record it now."""


class CassetteReadError(CassetteError):
    """A cassette file is damaged. It is left as it is."""


class ScoreTooLow(AssertionError):
    """The score is below the bar of the assertion. `verdict` is the whole verdict, `min` the bar (0 to 1)."""

    def __init__(self, message: str, *, verdict: Verdict, min: float) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.min = min

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes, with all that it knows."""
        return partial(type(self), verdict=self.verdict, min=self.min), self.args


class CtxEvalWarning(UserWarning):
    """Something that changes a result, though it is no error."""


for _public in (
    CtxEvalError,
    ConfigError,
    JudgeError,
    JudgeUnreachableError,
    JudgeReplyError,
    CassetteError,
    CassetteMissError,
    CassetteReadError,
    ScoreTooLow,
    CtxEvalWarning,
):
    _public.__module__ = "pytest_ctxeval"  # pytest prints the name that users import
