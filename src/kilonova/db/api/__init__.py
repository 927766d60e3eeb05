"""Tables and queries of the API database, one file per noun."""
