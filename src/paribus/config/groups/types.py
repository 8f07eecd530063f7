"""Value types shared by the groups."""

from typing import Annotated

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import AfterValidator, Field

from paribus.config.names import proper_device, proper_name, proper_path, proper_run_id

Positive = Annotated[int, Gt(0)]
NonNegative = Annotated[int, Ge(0)]
Seed = Annotated[int, Ge(0), Lt(2**63)]
"""What kernels take as one signed word."""
NonNegativeReal = Annotated[float, Ge(0)]
Probability = Annotated[float, Ge(0), Lt(1)]
PositiveFloat = Annotated[float, Gt(0)]
NULL_IS_NO_LIMIT = "null is no limit"
"""Marks the fields of which a message may say so."""
Limit = Annotated[PositiveFloat | None, NULL_IS_NO_LIMIT]
Fraction = Annotated[float, Gt(0), Lt(1)]
PruneShare = Annotated[float, Ge(0.05), Le(0.5)]
"""What the Unigram trainer takes."""
UpToOne = Annotated[float, Ge(0), Le(1)]
Cosine = Annotated[float, Gt(0), Le(1)]
Strings = Annotated[tuple[str, ...], Field(strict=False), MinLen(1)]
PathText = Annotated[str, AfterValidator(proper_path)]
Paths = Annotated[tuple[PathText, ...], Field(strict=False), MinLen(1)]
Name = Annotated[str, AfterValidator(proper_name)]
Device = Annotated[str, AfterValidator(proper_device)]
RunId = Annotated[str, AfterValidator(proper_run_id)]
Tasks = Annotated[tuple[str, ...], Field(strict=False)]
Shots = Annotated[tuple[NonNegative, ...], Field(strict=False), MinLen(1)]
ShotsOf = dict[str, Shots]
Share = Annotated[float, Gt(0), Le(1)]
