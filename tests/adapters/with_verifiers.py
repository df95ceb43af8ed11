"""verifiers: its own `vf-eval` plays the taskset against an endpoint that answers right or wrong as the prompt says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from kernel_tasks import BROKEN_REFERENCE, REFERENCE, RIGHT, URL, WRONG, expected_rewards, report

_ANSWERS = {"right": RIGHT, "wrong": WRONG}


class _Chat(BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint without streaming."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = {"role": "assistant", "content": _ANSWERS[request["messages"][-1]["content"]]}
        content = json.dumps(
            {
                "id": "chat",
                "object": "chat.completion",
                "created": 0,
                "model": request["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def _evaluate(folder: Path, endpoint: str) -> list[dict[str, Any]]:
    """The traces of one evaluation, one for each row, in order."""
    rows = [
        {"prompt": "right", "reference_source": REFERENCE},
        {"prompt": "wrong", "reference_source": REFERENCE},
        {"prompt": "right", "reference_source": BROKEN_REFERENCE},
    ]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [str(Path(sys.executable).parent / "vf-eval"), "warpsmith_verifiers", "-m", "m", "--no-push"]
    command += ["--env.taskset.path", str(folder / "tasks.jsonl"), "--env.taskset.task.url", URL]
    command += ["--env.agent.harness.id", "in_process_chat", "--env.agent.runtime.type", "subprocess"]
    command += ["--client.base-url", f"{endpoint}/v1", "--client.api-key-var", "CHAT_KEY", "--no-rich"]
    command += ["-o", str(folder), "--run.name", "run"]
    environment = {**os.environ, "CHAT_KEY": "k", "PYTHONPATH": str(Path(__file__).parent)}
    subprocess.run(command, check=True, timeout=240, cwd=folder, env=environment, stdout=sys.stderr)
    (file,) = folder.rglob("traces.jsonl")
    episodes = [json.loads(line) for line in file.read_text().splitlines()]
    traces = [trace for episode in episodes for trace in episode["traces"]]
    return sorted(traces, key=lambda trace: int(trace["task"]["data"]["idx"]))


def main() -> None:
    """Fails by assertion."""
    folder = Path(os.environ["WARPSMITH_ADAPTERS_SCRATCH"])
    expected = expected_rewards()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Chat)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        right, wrong, broken = _evaluate(folder, f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
    scores = tuple(trace["rewards"]["kernel_reward"]["score"] for trace in (right, wrong))
    assert scores == expected, scores
    assert (right["ok"], wrong["ok"], right["metrics"]["acc"], wrong["metrics"]["acc"]) == (True, True, 1.0, 0.0)
    assert (broken["ok"], broken["rewards"]["kernel_reward"]) == (False, None), broken
    assert broken["errors"][-1]["type"] == "TaskError"
    report(f"unscorable is an error of its trace: {broken['errors'][-1]['message']}")


if __name__ == "__main__":
    main()
