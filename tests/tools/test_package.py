"""Tests of what importing moonbox.tools brings and costs."""

from __future__ import annotations

import subprocess
import sys


def test_heavy_packages_are_loaded_only_when_a_schema_is_built_or_checked() -> None:
    program = (
        "import sys, moonbox.tools.tool, moonbox.tools.toolbox, moonbox.tools.results, moonbox.tools.search\n"
        "assert not {'pydantic', 'jsonschema_rs', 'asyncio'} & set(sys.modules), sorted(sys.modules)\n"
        "moonbox.tools.tool.Tool.from_schema(name='f', call=print)\n"
        "assert 'jsonschema_rs' in sys.modules and 'pydantic' not in sys.modules\n"
        "moonbox.tools.tool.Tool.from_function(lambda x: x, name='f')\n"
        "assert 'pydantic' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
