"""Tables as clients of Unity Catalog's API see them, create them and commit to them."""
