"""Types of arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
AnyFloats = npt.NDArray[np.floating]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
