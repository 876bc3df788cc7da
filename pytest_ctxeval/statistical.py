"""The statistical modes, where code written for fair-forge and gaussia looks for them."""

from pytest_ctxeval._core.statistics import BayesianMode, FrequentistMode, StatisticalMode

__all__ = ["BayesianMode", "FrequentistMode", "StatisticalMode"]
