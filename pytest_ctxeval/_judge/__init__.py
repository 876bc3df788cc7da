"""The only place that talks to a model or opens a cassette."""
