"""OPTIMIZE of clustered tables: what is clustered, and into which ZCubes."""
