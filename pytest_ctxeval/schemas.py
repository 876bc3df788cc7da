"""What goes in and what comes out, where code written for fair-forge and gaussia looks for it."""

from pytest_ctxeval._core.data import Batch, ContextCase, ContextInteraction, ContextMetric, Dataset, ModelTestCase

__all__ = ["Batch", "ContextCase", "ContextInteraction", "ContextMetric", "Dataset", "ModelTestCase"]
