"""Files in the real formats for this room's tests."""

from dataset_files import *  # noqa: F403  fixtures are found by name
