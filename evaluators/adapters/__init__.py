"""Ready-made judges: any function, and any endpoint that speaks the OpenAI chat protocol."""

from evaluators.adapters.environment import from_environment
from evaluators.adapters.functions import from_function
from evaluators.adapters.openai_chat import OpenAIChat, PriceTable

__all__ = ["OpenAIChat", "PriceTable", "from_environment", "from_function"]
