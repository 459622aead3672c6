# What Python calls of `log_rows.py`.

from advmdp.core.arrays import FloatArray

def sort_values(values: FloatArray) -> None: ...
