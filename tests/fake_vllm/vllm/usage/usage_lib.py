from enum import Enum


class UsageContext(Enum):
    LLM_CLASS = "LLM_CLASS"
