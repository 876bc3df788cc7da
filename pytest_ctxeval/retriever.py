"""`Retriever`, where code written for fair-forge and gaussia looks for it."""

from pytest_ctxeval._datasets.retriever import Retriever

__all__ = ["Retriever"]
