"""NeMo-Gym: the resources server's own web application answers /verify and /aggregate_metrics."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

from fastapi.testclient import TestClient
from kernel_tasks import BROKEN_REFERENCE, REFERENCE, RIGHT, URL, WRONG, expected_rewards, report
from nemo_gym.server_utils import ServerClient
from warpsmith_reward.adapters.nemo_gym import WarpsmithResourcesServer, WarpsmithResourcesServerConfig


def _body(reference: str, answer: str) -> dict[str, Any]:
    message = {
        "id": "message",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": answer, "annotations": []}],
    }
    response = {
        "id": "response",
        "object": "response",
        "created_at": 0,
        "model": "m",
        "output": [message],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
    params = {"input": [{"role": "user", "content": "Write it."}]}
    return {"responses_create_params": params, "response": response, "reference_source": reference}


def main() -> None:
    """Fails by assertion."""
    config = WarpsmithResourcesServerConfig(host="127.0.0.1", port=0, entrypoint="app.py", name="kernels", url=URL)
    server = WarpsmithResourcesServer(config=config, server_client=MagicMock(spec=ServerClient))
    rewards = expected_rewards()
    with TestClient(server.setup_webserver()) as client:

        def verify(reference: str, answer: str) -> dict[str, Any]:
            response = client.post("/verify", json=_body(reference, answer))
            assert response.status_code == 200, response.text
            return dict(response.json())

        assert client.post("/seed_session", json={}).status_code == 200
        right, wrong, broken = verify(REFERENCE, RIGHT), verify(REFERENCE, WRONG), verify(BROKEN_REFERENCE, RIGHT)
        assert (right["reward"], wrong["reward"], broken["reward"]) == (*rewards, 0.0)
        assert right["response"]["output"][0]["content"][0]["text"] == RIGHT
        assert [each["mask_sample"] for each in (right, wrong, broken)] == [False, False, True]
        assert broken["instance_config"] == {"mask_sample": True}
        report(f"unscorable is masked: {broken['failure_kind']}, {broken['failure_reason']}")
        rows = [{**row, "_ng_task_index": 0, "_ng_rollout_index": i} for i, row in enumerate((right, wrong))]
        metrics = client.post("/aggregate_metrics", json={"verify_responses": rows})
        assert metrics.status_code == 200, metrics.text
        assert metrics.json()["agent_metrics"]["mean/acc"] == 0.5, metrics.json()


if __name__ == "__main__":
    main()
