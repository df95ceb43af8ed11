"""Rewards for GPU code from a running Warpsmith reward service, over its HTTP door."""

from warpsmith_reward.client import AsyncRewardClient, RewardClient
from warpsmith_reward.connection import TlsFiles
from warpsmith_reward.device_lease import device_lease
from warpsmith_reward.messages import (
    Grade,
    Priority,
    Request,
    RequestRefused,
    RewardServiceError,
    ServiceUnavailable,
    Verdict,
)
from warpsmith_reward.retries import RetryOptions

__all__ = [
    "AsyncRewardClient",
    "Grade",
    "Priority",
    "Request",
    "RequestRefused",
    "RetryOptions",
    "RewardClient",
    "RewardServiceError",
    "ServiceUnavailable",
    "TlsFiles",
    "Verdict",
    "device_lease",
]
