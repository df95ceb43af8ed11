"""What is run, and with which versions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Framework:
    """One adapter's environment and script, `with_NAME.py`."""

    name: str
    # The distribution whose version is reported, and pinned requirements as pip takes them.
    distribution: str = ""
    requirements: tuple[str, ...] = ()
    # Installed without what they require: that needs a CUDA build which the adapter's contract does not touch.
    bare_requirements: tuple[str, ...] = ()
    # "": the Python that runs this command, whose torch the environment borrows; else one of its own, without torch.
    python: str = ""
    # Why it cannot be run anywhere from a package registry; then there is no script.
    not_installable: str = ""


FRAMEWORKS = (
    Framework("client", "warpsmith-reward"),
    Framework("trl", "trl", ("trl==1.16.0",)),
    Framework("verl", "verl", ("verl==0.9.1",)),
    Framework("skyrl_gym", "skyrl-gym", ("skyrl-gym==0.4.0",)),
    Framework("verifiers", "verifiers", ("verifiers==0.4.0",)),
    Framework("nemo_gym", "nemo-gym", ("nemo-gym==0.4.0",), python="3.12"),
    Framework("openrlhf", "openrlhf", ("aiohttp==3.14.5", "pylatexenc==2.11"), ("openrlhf==0.11.2",)),
    Framework(
        "slime",
        not_installable="not in the registry (its 'slime' is another project); from source it needs Megatron and "
        "SGLang, CUDA builds",
    ),
)
