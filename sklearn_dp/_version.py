"""The version of the package; without imports, as everything imports it."""

__version__ = "0.1.0.dev0"
