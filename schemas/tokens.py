"""When the tokens of each request to a server came: a row per chunk of its stream."""

from whichwall.schemas.table import INT32, INT64, Column, Table


class Tokens(Table):
    """A row per streamed chunk that brought tokens."""

    NAME = "tokens"

    point = Column(INT32, "Point of the run.", required=True)
    completion = Column(INT32, "Index of its request in completions.", required=True)
    index = Column(INT32, "Number of the chunk within its stream, from 0.", required=True)
    at_ns = Column(INT64, "When it came, since its request was sent.", "ns", required=True)
    tokens = Column(INT64, "Tokens in it; null: the server does not say.", "tokens")
