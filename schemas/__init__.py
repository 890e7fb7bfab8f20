"""What a run is: every table, column, unit and version, the manifest, models and hardware.

Nothing here imports `collect` or `analyze`. Only `schemas.run` imports polars, so that
a machine with torch and pyarrow alone can collect.
"""
