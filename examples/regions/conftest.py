import pytest


def pytest_addoption(parser):
    parser.addoption("--store", default="store.tdl", help="The experiment with the configuration.")


@pytest.fixture
def store(request):
    """The experiment, whose configuration is tested."""
    return request.config.getoption("--store")
