"""docs/client.md is true: its Python runs, block after block, against a real service."""

import re

from tests.repository import ROOT

GUIDE = (ROOT / "docs" / "client.md").read_text()


def test_the_guides_snippets_run(monkeypatch, server):
    monkeypatch.setenv("TIDEGATE_URL", server)
    monkeypatch.delenv("TIDEGATE_TOKEN", raising=False)
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) > 5
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/client.md", "exec"), names)
    names["lake"].close()
