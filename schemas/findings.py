"""What a check of a run finds: in which file, what was expected, and what to do."""

from typing import Literal, NamedTuple

ERROR: Literal["error"] = "error"
REMARK: Literal["remark"] = "remark"

COPY_AGAIN = "copy the run again"
MAKE_AGAIN = "import or collect the run again"


class Finding(NamedTuple):
    """One thing about one file.

    An error: the run is not what was written, or contradicts itself. A remark: the trace itself is
    odd there, was kept as it is, and analyses count with it.
    """

    file: str
    found: str
    expected: str = ""
    advice: str = ""
    severity: Literal["error", "remark"] = ERROR

    def line(self) -> str:
        """Return it on one line, whatever a file's name or a library put into it."""
        said = "; ".join(
            part
            for part in (self.found, self.expected and f"expected {self.expected}", self.advice)
            if part
        )
        return printable(f"{self.file}: {said}")


def printable(text: str) -> str:
    """Return text without what a terminal would act on or an encoding would refuse."""
    words = " ".join(text.split())
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words)
