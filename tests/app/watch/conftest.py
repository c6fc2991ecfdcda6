"""An engine for the tests of a watch."""

import pytest

from tests.support.watch_rig import WatchClient, edit_with, hello


@pytest.fixture
def client() -> WatchClient:
    """One that adds a greeting to whatever it is asked to edit."""
    return WatchClient(edit_with(hello))
