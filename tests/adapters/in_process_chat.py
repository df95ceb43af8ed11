"""A harness of verifiers that asks the model once, in this process; its own harnesses install programs with uv."""

from __future__ import annotations

from typing import Any

import httpx
import verifiers.v1 as vf

__all__ = ["InProcessChat"]


class InProcessChat(vf.Harness[vf.HarnessConfig]):
    """One turn through the interception server, as the contract of Harness.launch allows."""

    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
        **_: Any,
    ) -> vf.ProgramResult:
        """Fails with the HTTP error of the model's endpoint."""
        body = {"model": ctx.model, "messages": [{"role": "user", "content": data.prompt}]}
        headers = {"Authorization": f"Bearer {secret}"}
        async with httpx.AsyncClient(timeout=60) as client:
            (await client.post(f"{endpoint}/chat/completions", json=body, headers=headers)).raise_for_status()
        return vf.ProgramResult(0, "", "")
