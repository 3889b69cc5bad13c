"""What a LiteLLM proxy says of itself that a payer should know: whether it sends a request again on its own."""

from collections.abc import Iterator
from typing import Any

UNSEEN = (
    "whether the LiteLLM proxy sends requests again on its own cannot be seen with this key: "
    "see to it that its num_retries is 0 and that it has no fallbacks"
)


def advise(router: Any, models: Any, asked: frozenset[str]) -> tuple[str, ...]:
    """Return what speaks against one request for one call.

    Args:
        router: the proxy's answer to ``/router/settings``.
        models: its answer to ``/v1/model/info``.
        asked: the models that are used here, by the names of the proxy.
    """
    values = router.get("current_values") if isinstance(router, dict) else None
    entries = models.get("data") if isinstance(models, dict) else None
    if not isinstance(values, dict) or not isinstance(entries, list):
        return (UNSEEN,)
    return (*_of_router(values), *_of_models(entries, asked))


def _of_router(values: dict[str, Any]) -> Iterator[str]:
    retries = values.get("num_retries")
    if retries:
        yield f"the LiteLLM proxy sends a failed request {retries} more times: set router_settings.num_retries to 0"
    for name in ("fallbacks", "context_window_fallbacks", "content_policy_fallbacks"):
        if values.get(name):
            yield f"the LiteLLM proxy sends a failed request to another model: remove {name} from its router_settings"
    if values.get("retry_policy"):
        yield "the LiteLLM proxy has a retry_policy: remove it from its router_settings"


def _of_models(entries: list[Any], asked: frozenset[str]) -> Iterator[str]:
    for entry in entries:
        name = entry.get("model_name") if isinstance(entry, dict) else None
        given = entry.get("litellm_params") or {} if name in asked else {}
        for setting in ("num_retries", "max_retries"):
            if given.get(setting):
                yield f"the LiteLLM proxy sends a failed request for {name} again: set its {setting} to 0"
