"""The name under which verifiers finds the taskset: it looks tasksets up among top-level packages."""

from warpsmith_reward.adapters.verifiers import WarpsmithTaskset

__all__ = ["WarpsmithTaskset"]
