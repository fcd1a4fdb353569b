"""Readers of measured figures that others have published, a file a source. The figures stay where they are."""
