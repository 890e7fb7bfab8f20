from vllm.usage.usage_lib import UsageContext


class EngineArgs:
    @classmethod
    def get_batch_defaults(
        cls, world_size: int
    ) -> tuple[dict[UsageContext, int], dict[UsageContext, int]]:
        from vllm import SETTINGS

        return {UsageContext.LLM_CLASS: SETTINGS["step_tokens"]}, {UsageContext.LLM_CLASS: 8}
