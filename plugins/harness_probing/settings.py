"""How probes are trained, and what is reported of them: the presets `default` and `paper`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from harness import UsageError

FRACTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Where the portions of the online code end (Voita and Titov 2020, section 2.2.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSettings:
    """The numbers of linear probes."""

    name: str = "default"
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    """One probe a layer each: of its initial weights, the order of the items, dropout and the control task."""
    standardize: bool = True
    """Whether every feature of a layer gets mean 0 and variance 1 on train."""
    dropout: float = 0.0
    """Share of the features that are dropped in training."""
    zero_start: bool = True
    """Whether weights begin with zeros (the loss is convex, and random weights would have to be unlearnt); otherwise
    they begin as those of torch's Linear."""
    average: bool = True
    """Whether the mean of an epoch's weights is judged and kept, not the last ones (Polyak and Juditsky 1992): noise of
    the batches then does not count, and smaller batches do in fewer epochs."""
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    """Of AdamW (Loshchilov and Hutter 2019): decoupled."""
    epsilon: float = 1e-8
    batch_size: int = 256
    batch_unit: Literal["vectors", "sentences"] = "vectors"
    steps_per_epoch: int = 32
    """A small train set gets smaller batches of vectors, so that an epoch has at least so many steps; 0 for none."""
    smallest_batch: int = 16
    """Batches do not become smaller than this for the sake of `steps_per_epoch`."""
    max_epochs: int = 40
    patience: int = 2
    """Epochs without a lower loss on dev after which a probe stops; its best weights are kept."""
    embedding_layer: bool = True
    """Whether layer 0 is probed; it is a baseline, and never chosen as the best layer unless it is the only one."""
    choose_on: Literal["dev", "test"] = "dev"
    """Which split's scores name the headline layer; `test` is the published view, and marked as such."""
    control: bool = True
    """Whether every probe has a twin on its control task (Hewitt and Liang 2019)."""
    fractions: tuple[float, ...] = FRACTIONS
    """Of the online code; empty for none. It is measured with the first seed."""
    mix: bool = True
    """Whether a scalar mix of the layers is probed as well, with the first seed."""

    @classmethod
    def preset(cls, name: str, **changes: Any) -> ProbeSettings:
        """Return a preset with some of its numbers changed."""
        return replace(PRESETS[name], **changes)

    def layers_of(self, layers: Sequence[int]) -> tuple[int, ...]:
        """Return those of a model's layers that are probed, 0 being the embeddings; raises `UsageError` for none."""
        probed = tuple(layer for layer in layers if layer > 0 or self.embedding_layer)
        if not probed:
            raise UsageError(
                f"The probe preset {self.name!r} excludes layer 0, and there is no other layer in {list(layers)}."
            )
        return probed

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON."""
        return {
            key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()
        }


PRESETS: Mapping[str, ProbeSettings] = {
    "default": ProbeSettings(),
    "paper": ProbeSettings(
        name="paper",
        seeds=(42,),
        standardize=False,
        dropout=0.1,
        zero_start=False,
        average=False,
        learning_rate=1e-2,
        weight_decay=1e-6,
        epsilon=1e-6,
        batch_size=128,
        batch_unit="sentences",
        max_epochs=30,
        patience=2,
        embedding_layer=False,
        choose_on="test",
        control=False,
        fractions=(),
        mix=False,
    ),
}
"""`paper`: the released notebooks of Patil et al. 2021 (rajaswa/indic-syntax-evaluation), transformers' AdamW."""
