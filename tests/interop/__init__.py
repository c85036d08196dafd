"""Writers of other makers on tables that the service keeps."""
