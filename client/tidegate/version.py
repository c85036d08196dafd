"""The version of the installed distribution, as user agents and `engineInfo` name it."""

from importlib.metadata import version

__version__ = version("tidegate")
ENGINE_INFO = f"tidegate-python/{__version__}"
