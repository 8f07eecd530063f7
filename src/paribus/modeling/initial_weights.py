"""The random weights of a decoder, drawn a parameter at a time. Imports torch: import this module late."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from paribus.config.groups.model import DecoderModel
from paribus.modeling.decoder.decoder import VOCABULARY, Decoder
from paribus.modeling.decoder.names import places
from paribus.modeling.initialize import initialize


@dataclass(frozen=True)
class InitialWeights:
    """What `initialize` sets the parameters of `decoder` to, whose own numbers are not looked at."""

    decoder: Decoder
    model: DecoderModel
    """Without fields that are still to be matched."""
    seed: int
    tokens: Sequence[bytes] | None
    """Distinct names of the tokens by id; None where nothing is to be compared."""

    def rows(self, name: str, start: int, stop: int) -> torch.Tensor:
        """Rows `start` to `stop` of the parameter `name`, float32 on the CPU; its other rows are drawn as well."""
        parameter = torch.empty(self.decoder.get_parameter(name).shape)
        sought = [place for place in places(self.decoder.architecture) if place.parameter == name]
        tensors = {place.name: parameter[place.rows] for place in sought}
        initialize(tensors, self.model, self.seed, tensors if name in VOCABULARY else (), self.tokens)
        return parameter[start:stop]
