"""Delta schemas: types, columns and their paths, values and how text spells them."""
