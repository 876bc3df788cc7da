"""Recordings of what a judge answered: read, replayed, made and kept.

`file` reads and writes the files, `key` says which recorded request a request is, `trim` keeps what is worth keeping
of an exchange, `secrets` searches it, `tape` is one test's cassette with its record mode, `transport` puts it
under the HTTP clients, `miss` explains a request that is not recorded by what `changes` finds.
"""
