"""The pytest plugin: short hooks. PYTEST_DONT_REWRITE.

This file is loaded in every pytest run of everyone who has the package installed, so it imports the standard library,
pytest and light files of ours, and everything else at the first use.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from pytest_ctxeval._plugin import collect, options
from pytest_ctxeval._plugin.stash import (
    ASSISTANT,
    BENCH,
    BROKEN,
    DESELECTED,
    JUDGE,
    LEDGER,
    NAMED,
    NODE_ID,
    PART_FAILED,
    RUNNING,
    SETTINGS,
    SKIPPED,
    TESTS,
)
from pytest_ctxeval.errors import ConfigError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from pytest_ctxeval._core.data import ContextCase
    from pytest_ctxeval._plugin.assistant import AssistantCassette
    from pytest_ctxeval._plugin.item_judge import ItemJudge


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    options.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Read and check the options before anything is collected."""
    config.addinivalue_line(
        "markers",
        "ctxeval(dataset=..., session_id=..., context=..., samples=..., metrics=...): a test of an assistant's answers "
        "or of a retriever, judged by a language model; dataset= makes one test of each of its cases.",
    )
    try:
        config.stash[SETTINGS] = options.read_settings(config)
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None
    if config.stash[SETTINGS].baseline and not hasattr(config, "workerinput"):
        from pytest_ctxeval._plugin.session import read_baseline

        try:
            read_baseline(config)
        except ConfigError as error:
            raise pytest.UsageError(str(error)) from None
    if not hasattr(config, "workerinput"):  # a worker of pytest-xdist sends its reports to the process that prints
        config.pluginmanager.register(Recorder(config), "ctxeval-recorder")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave the process as it was."""
    if BENCH in config.stash:
        config.stash[BENCH].close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each case of a dataset."""
    try:
        collect.parametrize(metafunc)
    except ConfigError as error:
        raise pytest.Collector.CollectError(str(error)) from None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give every test that uses the plugin the keyword `context` and the marker."""
    collect.mark_item(item)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start each attempt at a test with no results."""
    __tracebackhide__ = True
    if NODE_ID in item.stash:
        from pytest_ctxeval._plugin.attempt import start_attempt

        try:
            start_attempt(item)
        except ConfigError as error:  # of the marker: the way to it says nothing to the reader
            raise error.with_traceback(None) from None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Record this test and others before they run, where they say by which metrics they will be judged."""
    if NAMED not in item.config.stash or JUDGE not in item.stash or not collect.metrics_of(item):
        return
    if item.config.stash[SETTINGS].record in ("once", "new_episodes", "all") and not hasattr(
        item.config, "workerinput"
    ):
        from pytest_ctxeval._plugin.ahead import go_ahead

        go_ahead(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let the assertion helpers know which test is running, and the process that prints what it will be about."""
    if NODE_ID not in item.stash:
        return (yield)
    from pytest_ctxeval._plugin import attempt

    RUNNING.append(item)
    try:
        if hasattr(item.config, "workerinput"):
            attempt.announce(item)
        return (yield)
    except (KeyboardInterrupt, pytest.exit.Exception):
        attempt.keep_unreported(item)
        raise
    finally:
        RUNNING.remove(item)
        attempt.forget(item)
        attempt.leave_clean()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Let a judge be built without its key: where every answer is replayed, none is needed."""
    if fixturedef.argname != "judge_model" or not collect.is_judged(request):
        return (yield)
    from pytest_ctxeval._judge.placeholder import placeholder_keys

    with placeholder_keys():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Send what was judged with the report of the test: it survives whatever becomes of the process."""
    report = yield
    if NODE_ID in item.stash:
        from pytest_ctxeval._plugin.attempt import attach_results

        attach_results(item, call, report)
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """See to tests that a conftest.py has marked only now."""
    collect.mark_late(items)


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Note which tests of ours are left out: the run cannot tell which recordings are needed."""
    collect.note_deselected(items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note which tests of ours were left out by a hook that did not say so."""
    collect.note_dropped(session)
    if hasattr(session.config, "workeroutput"):  # of a worker of pytest-xdist, which may have none of them left
        session.config.workeroutput["ctxeval_left_out"] = session.config.stash.get(DESELECTED, [])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a subtest that failed: its test may end without an error all the same."""
    if report.failed and RUNNING and RUNNING[-1].nodeid == report.nodeid:
        RUNNING[-1].stash[PART_FAILED] = True


class Recorder:
    """The hooks of the process that prints: gather what was judged, check the gates, tell."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._ended = 0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        """Take what a report carries, in this process or from a worker; first, since `--junitxml` shows it."""
        self._ended += report.when in ("teardown", "???")
        if str(report.when) == "???":  # of a test at which a worker of pytest-xdist crashed
            self._config.stash[BROKEN] = "a worker crashed"
        if LEDGER not in self._config.stash and not hasattr(report, "ctxeval"):
            return (yield)  # a test of others, and none of ours so far
        from pytest_ctxeval._plugin.ledger import forget_text, ledger_of

        ledger_of(self._config).record(report)
        if self._config.getoption("xmlpath", None):
            from pytest_ctxeval._plugin.junit import add_properties

            add_properties(report, ledger_of(self._config))
        try:
            return (yield)
        finally:
            forget_text(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note that a file could not be collected, or was skipped as a whole."""
        if report.failed:
            self._config.stash[BROKEN] = "not all tests could be collected"
        elif report.skipped:
            self._config.stash[SKIPPED] = report.nodeid

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note which tests there are."""
        self._config.stash[TESTS] = [item.nodeid for item in session.items]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Note which tests of ours were left out, where a worker knows of it."""
        left_out = getattr(node, "workeroutput", {}).get("ctxeval_left_out")
        if left_out:
            self._config.stash[DESELECTED] = left_out  # of every worker the same

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Note which tests there are, where the workers collect."""
        self._config.stash[TESTS] = ids

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Check the gates when every test has run, and before the run's result is settled."""
        result = yield
        lost = BROKEN in self._config.stash and self._ended < len(self._config.stash.get(TESTS, []))
        if self._has_something_to_tell and not session.config.option.collectonly and not lost:
            from pytest_ctxeval._plugin.session import finish_run

            finish_run(session)
        return result

    def pytest_sessionfinish(self) -> None:
        """Write the reports."""
        if self._has_something_to_tell and not self._config.option.collectonly:
            from pytest_ctxeval._plugin.session import write_reports

            write_reports(self._config)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the section."""
        if not self._has_something_to_tell:
            return
        from pytest_ctxeval._plugin.session import section_lines

        width, verbosity = terminalreporter._tw.fullwidth, self._config.get_verbosity()  # noqa: SLF001  # the only way
        found = section_lines(self._config, width=width, verbosity=verbosity)
        if found:
            terminalreporter.write_sep("=", "context evaluation")
        for line in found:
            terminalreporter.write_line(line.text, **line.markup)

    @property
    def _has_something_to_tell(self) -> bool:
        settings = self._config.stash[SETTINGS]
        return LEDGER in self._config.stash or bool(settings.gates or settings.reports) or settings.unused == "fail"


@pytest.fixture(scope="session")
def judge_model(request: pytest.FixtureRequest) -> BaseChatModel:
    """The model that judges. Override it in conftest.py with any LangChain chat model, or use --ctxeval-judge."""
    from pytest_ctxeval._plugin.item_judge import model_from_settings

    return model_from_settings(request.config.stash[SETTINGS])


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> Generator[ItemJudge]:
    """The judge of this test: `judge.assess("context_awareness", case)` gives the verdict without asserting."""
    from pytest_ctxeval._plugin.item_judge import ItemJudge

    __tracebackhide__ = True
    collect.check_marked(request.node)
    item_judge = request.node.stash[JUDGE] = ItemJudge(request)
    yield item_judge
    item_judge.close()


@pytest.fixture
def context_case(request: pytest.FixtureRequest, judge: ItemJudge) -> ContextCase:
    """The case under test: of the marker's dataset, or blank. Calling it gives a copy with fields filled in."""
    del judge  # its cassette is saved after the test
    case: ContextCase = request.param if hasattr(request, "param") else collect.blank_case(request.node)
    return case


@pytest.fixture
def ctxeval_cassette(request: pytest.FixtureRequest, judge: ItemJudge) -> AssistantCassette:
    """`with ctxeval_cassette:` puts the assistant's own model calls on the cassette of this test."""
    from pytest_ctxeval._plugin.assistant import AssistantCassette

    cassette = request.node.stash[ASSISTANT] = AssistantCassette(judge.tape)
    return cassette
