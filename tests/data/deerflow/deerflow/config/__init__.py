import json
import os
from types import SimpleNamespace
from typing import Any


def get_app_config() -> Any:
    """The section `sandbox` is the JSON of TEST_DEERFLOW_SANDBOX."""
    return SimpleNamespace(sandbox=SimpleNamespace(**json.loads(os.environ.get("TEST_DEERFLOW_SANDBOX", "{}"))))
