"""Fields of a config.json, which architectures spell in different ways."""

from collections.abc import Mapping

from whichwall.schemas.errors import InputError


class Fields:
    """Look up config fields under any of their spellings, and say which one is missing."""

    def __init__(self, config: Mapping[str, object], where: str) -> None:
        """Take the fields and the name that messages give to their file."""
        self.config = config
        self.where = where

    def maybe(self, *names: str) -> object:
        """Return the first field that is there and not null, else None."""
        return next((self.config[n] for n in names if self.config.get(n) is not None), None)

    def count(self, *names: str) -> int | None:
        """Return a whole number that is not negative, or None where no such field is."""
        found = self.maybe(*names)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
            raise InputError(f"{self.where}: {names[0]} is {found!r}, expected a whole number")
        return found

    def need(self, *names: str) -> int:
        """Return a positive whole number.

        Raises:
            InputError: no such field, or it is no such number.
        """
        found = self.count(*names)
        if not found:
            what = "is 0" if found == 0 else f"is missing{_also(names)}"
            raise InputError(
                f"{self.where}: field {names[0]} {what}; expected the config.json of a decoder"
            )
        return found


def _also(names: tuple[str, ...]) -> str:
    return f" (nor {', '.join(names[1:])})" if len(names) > 1 else ""
