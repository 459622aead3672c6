"""``advmdp doctor`` prints every finding with its fix, and its exit code says whether something is broken."""

import io

import pytest
from rich.console import Console

from advmdp.cli import doctor
from advmdp.core.installation import Finding


@pytest.mark.parametrize(
    ("level", "works", "label"),
    [
        ("fine", True, "fix"),
        ("optional", True, "to add"),
        ("note", True, "if so"),
        ("slow", True, "fix"),
        ("broken", False, "fix"),
    ],
)
def test_the_verdict_is_that_of_the_findings(
    level: str, works: bool, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "findings", lambda: [Finding(level, "a [thing]", "do [this]")])
    said = io.StringIO()
    assert doctor.examine(Console(file=said, width=80)) == works
    assert "a [thing]" in said.getvalue()
    assert f"{label}: do [this]" in said.getvalue()
    assert said.getvalue().startswith("This installation works") == works
    assert ("installed already" in said.getvalue()) == (level == "optional")
