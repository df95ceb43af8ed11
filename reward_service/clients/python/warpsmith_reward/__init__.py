"""Rewards for GPU code from a running Warpsmith reward service, over its HTTP door."""

from warpsmith_reward.client import AsyncRewardClient, RewardClient
from warpsmith_reward.messages import Grade, Request, RequestRefused, RewardServiceError, ServiceUnavailable, Verdict

__all__ = [
    "AsyncRewardClient",
    "Grade",
    "Request",
    "RequestRefused",
    "RewardClient",
    "RewardServiceError",
    "ServiceUnavailable",
    "Verdict",
]
