"""What every route stands on: how a request finds it (`route.py`), what it asks of its caller
(`policies.py`), and the parameters that several share. The resources themselves are in `routes`."""
