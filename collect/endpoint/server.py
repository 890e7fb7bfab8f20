"""Meet a server: which model it serves, how it wants to be asked, and what it says of itself."""

import asyncio
from dataclasses import dataclass
from typing import Any

from whichwall.collect.endpoint.address import Address
from whichwall.collect.endpoint.client import MODELS, VERSION, Client, Reply
from whichwall.collect.endpoint.dialect import KEY, KEY_STATUSES, Dialect
from whichwall.collect.endpoint.events import shown
from whichwall.collect.endpoint.prompts import Prompter
from whichwall.collect.options import without_folders
from whichwall.schemas.errors import CollectError, UsageError
from whichwall.schemas.manifest import ServerFacts

IDS, TEXT = "ids", "text"
MOST_NAMED = 5
# Under these names servers say how many tokens a request can have in all.
LONGEST = ("max_model_len", "context_length", "max_context_length", "n_ctx")


@dataclass(frozen=True)
class Listed:
    """A model by its name at the server, and what its list of models says of it."""

    name: str
    made_by: str | None = None
    longest: int | None = None


@dataclass(frozen=True)
class Met:
    """A server that answers."""

    served: Listed
    version: str | None
    fields: list[str]
    refused: list[str]
    prompter: Prompter

    def facts(self, address: Address) -> ServerFacts:
        """Return what a manifest says of it."""
        return ServerFacts(
            url=address.shown,
            model=without_folders(self.served.name),
            is_here=address.is_here,
            made_by=self.served.made_by,
            version=self.version,
            longest_tokens=self.served.longest,
            prompts=TEXT if self.prompter.ids is None else IDS,
            fields_refused=self.refused,
        )

    def dialect(self, client: Client) -> Dialect:
        """Return how it is asked, over other connections."""
        return Dialect(client, self.served.name, self.prompter, self.fields)


async def meet(client: Client, model: str | None, seed: int) -> Met:
    """Find out all that is needed before anything is measured.

    Raises:
        CollectError: no server, or none that can be measured.
        UsageError: it serves several models and none was named, or it wants a key.
    """
    served = await _served(client, model)
    dialect = Dialect(client, served.name, Prompter(seed))
    await dialect.learn()
    return Met(served, await _version(client), dialect.fields, dialect.refused, dialect.prompter)


async def _served(client: Client, model: str | None) -> Listed:
    where, reply = client.address.shown, await client.get(MODELS)
    if reply.status is None:
        raise CollectError(
            f"{where}: no server answers ({reply.says}); start it, or give its --url"
        )
    if reply.status in KEY_STATUSES:
        raise UsageError(f"{where}: wants another key ({reply.says}); set {KEY}")
    listed = _listed(client, reply)
    if model is not None:
        # A name that the list lacks may still be an alias that the server knows.
        return next((one for one in listed if one.name == model), Listed(model))
    if not listed:
        why = "" if reply.is_ok else f" ({reply.says})"
        raise UsageError(f"{where}: lists no model at {MODELS}{why}; name it by --model")
    if len(listed) > 1:
        names = ", ".join(one.name for one in listed[:MOST_NAMED])
        more = ", …" if len(listed) > MOST_NAMED else ""
        raise UsageError(
            f"{where}: serves {len(listed)} models; give one of them as --model: {names}{more}"
        )
    return listed[0]


def _listed(client: Client, reply: Reply) -> list[Listed]:
    """Return the models of a list, each once; what is no model is left out."""
    body: Any = reply.body if reply.is_ok else None
    entries = body.get("data") if isinstance(body, dict) else None
    found: dict[str, Listed] = {}
    for entry in entries if isinstance(entries, list) else []:
        name = entry.get("id") if isinstance(entry, dict) else None
        if isinstance(name, str) and name and name.isprintable():
            made_by = _said(client, entry.get("owned_by"))
            found.setdefault(name, Listed(name, made_by, _longest(entry)))
    return list(found.values())


def _longest(entry: dict[str, Any]) -> int | None:
    meta = entry.get("meta")
    places = [entry, meta if isinstance(meta, dict) else {}]
    values = (place.get(name) for place in places for name in LONGEST)
    return next((v for v in values if isinstance(v, int) and v > 1), None)


async def _version(client: Client) -> str | None:
    reply = await client.get(VERSION)
    found = reply.body.get("version") if reply.is_ok and isinstance(reply.body, dict) else None
    return _said(client, found)


def _said(client: Client, found: object) -> str | None:
    """Return a text by which a server describes itself, fit to be kept; None if it is none."""
    return shown(client.hide(found).encode()) if isinstance(found, str) and found else None


async def is_gone(client: Client, tries: int, wait_s: float) -> str | None:
    """Return why a server that answered before does so no more; None where it still does."""
    reply = await client.get(MODELS)
    for _ in range(tries - 1):
        if reply.status is not None:
            return None
        await asyncio.sleep(wait_s)
        reply = await client.get(MODELS)
    return reply.says if reply.status is None else None
