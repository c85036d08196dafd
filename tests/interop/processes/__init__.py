"""Stock Delta Spark as processes of their own."""
